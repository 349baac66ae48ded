// The go command's build cache of these tests. Each bug makes the go command compile every package
// above it anew, some 90 MB: in the user's own cache that would stay for days. So this test binary
// is also a cache (GOCACHEPROG): it reads the user's, and writes to a folder that ends with the test.

package planted

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// envWritten names the folder for what is compiled. With it this binary is a cache.
const envWritten = "PLANTED_CACHE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(envWritten); dir != "" {
		c := cache{user: os.Getenv("GOCACHE"), dir: dir, written: make(map[string]answer)}
		c.serve(os.Stdin, os.Stdout)
		return
	}
	os.Exit(m.Run())
}

// goCommand returns a go command that works on the module. Until the test ends, what it compiles is kept in a folder
// of the test.
func goCommand(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOCACHEPROG="+self, "GOCACHE="+userCache(), envWritten+"="+t.TempDir())
	return cmd
}

// warmUp puts the package into the user's cache without any bug, once.
func warmUp(t *testing.T, pkg string) {
	t.Helper()
	once, _ := warm.LoadOrStore(pkg, sync.OnceValues(func() ([]byte, error) {
		cmd := exec.Command("go", append(append([]string{"test"}, quickBuild...), "-run=^$", "./"+pkg)...)
		cmd.Dir = root
		return cmd.CombinedOutput()
	}))
	if out, err := once.(func() ([]byte, error))(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// warm has, by package, what warmUp does once.
var warm sync.Map

// quickBuild are the flags of what is compiled: a bug costs less than half of the time if its packages
// are not optimized and have nothing for a debugger.
var quickBuild = []string{
	"-vet=off", "-gcflags=github.com/holdfast-go/holdfast/...=-N -l -dwarf=false", "-ldflags=-s -w",
}

// userCache returns the folder of the user's build cache.
var userCache = sync.OnceValue(func() string {
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		panic(err)
	}
	return strings.TrimSpace(string(out))
})

// cache is a build cache of one go command. See package cmd/go/internal/cacheprog.
type cache struct {
	user    string // the folder of the user's cache, which is only read
	dir     string
	written map[string]answer // by action
}

type request struct {
	ID                 int64
	Command            string
	ActionID, OutputID []byte
	BodySize           int64
}

type answer struct {
	ID            int64
	KnownCommands []string `json:",omitempty"`
	Err           string   `json:",omitempty"`
	Miss          bool     `json:",omitempty"`
	OutputID      []byte   `json:",omitempty"`
	Size          int64    `json:",omitempty"`
	DiskPath      string   `json:",omitempty"`
}

// serve answers requests until it is told to close.
func (c *cache) serve(in io.Reader, out io.Writer) {
	requests, answers := json.NewDecoder(in), json.NewEncoder(out)
	_ = answers.Encode(answer{KnownCommands: []string{"get", "put", "close"}})
	for {
		var r request
		if requests.Decode(&r) != nil {
			return
		}
		var a answer
		switch action := hex.EncodeToString(r.ActionID); r.Command {
		case "get":
			a = c.get(action)
		case "put":
			var body []byte
			if r.BodySize > 0 && requests.Decode(&body) != nil {
				return
			}
			a = answer{OutputID: r.OutputID, Size: r.BodySize, DiskPath: filepath.Join(c.dir, hex.EncodeToString(r.OutputID))}
			if err := os.WriteFile(a.DiskPath, body, 0o600); err != nil {
				a = answer{Err: err.Error()}
			} else {
				c.written[action] = a
			}
		}
		a.ID = r.ID
		if answers.Encode(a) != nil || r.Command == "close" {
			return
		}
	}
}

// get returns what was written here, or else what the user's cache has.
func (c *cache) get(action string) answer {
	if a, ok := c.written[action]; ok {
		return a
	}
	entry, _ := os.ReadFile(filepath.Join(c.user, action[:2], action+"-a"))
	fields := strings.Fields(string(entry)) // v1, action, output, size, time
	if len(fields) != 5 || fields[0] != "v1" {
		return answer{Miss: true}
	}
	output, err := hex.DecodeString(fields[2])
	path := filepath.Join(c.user, fields[2][:2], fields[2]+"-d")
	info, missing := os.Stat(path)
	if err != nil || missing != nil || strconv.FormatInt(info.Size(), 10) != fields[3] {
		return answer{Miss: true}
	}
	return answer{OutputID: output, Size: info.Size(), DiskPath: path}
}
