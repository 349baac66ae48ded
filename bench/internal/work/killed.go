// A leader's process is killed; the workload measures how soon the candidate in another process leads.

package work

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/measure"
	"github.com/holdfast-go/holdfast/bench/internal/peer"
)

// killedElections is how many elections have their leaders killed beside each other: each takes seconds.
const killedElections = 4

func killed() Workload {
	return Workload{
		Name:       ElectionKilled,
		Title:      fmt.Sprintf("election, leases of %g s: from kill -9 of the leader's process until the candidate in another leads", peer.Term.Seconds()),
		Processes:  electionProcesses,
		Contenders: electionContenders,
		Latency:    true,
		Window:     Window{Full: 8 * time.Second, Quick: 8 * time.Second, Rounds: measure.LeastRounds},
		Run: func(ctx context.Context, s *Site) error {
			switch s.Process {
			case 0:
				return outlive(ctx, s)
			case etcdProcess:
				return serveEtcd(ctx, s)
			}
			s.Ready() // it has nothing to do: each leader has a process of its own
			<-ctx.Done()
			return nil
		},
	}
}

// outlive leads after one killed leader after the other, in several elections.
func outlive(ctx context.Context, s *Site) error {
	addr, err := s.electionServer(ctx)
	if err != nil {
		return err
	}
	p, err := openElections(ctx, s.Contender, addr)
	if err != nil {
		return err
	}
	defer p.Close()
	return s.Loop(ctx, killedElections, func(i int) Task {
		name := fmt.Sprint(s.Name, ":", i)
		next := p.Lock(name)
		return func(ctx context.Context) (int64, error) {
			took, err := succeed(ctx, next, victim{s.Contender, addr, name})
			if err == nil {
				s.Meter.Took(took)
			}
			return 1, err
		}
	})
}

// succeed starts a leader, kills it while next waits, and returns how long it took next to lead. The time until
// the kill varies, so that it comes at any time between two renewals.
func succeed(ctx context.Context, next peer.Lock, v victim) (time.Duration, error) {
	leader, err := v.start(ctx)
	if err != nil {
		return 0, err
	}
	defer leader.kill()
	var leads time.Time
	over := make(chan error, 1)
	go func() { over <- next.Pair(ctx, func() { leads = time.Now() }) }()
	select {
	case err := <-over:
		return 0, errors.Join(err, ctx.Err(), errors.New("the candidate did not wait"))
	case <-time.After(peer.Term/4 + rand.N(peer.Term/3)):
	}
	killed := time.Now()
	leader.kill()
	if err := <-over; err != nil {
		return 0, err
	}
	return leads.Sub(killed), nil
}

// victim is a candidate that leads until its process is killed.
type victim struct{ Contender, Addr, Name string }

// envVictim is the environment variable in which such a process finds what to do.
const envVictim = "HOLDFAST_BENCH_VICTIM"

// victimProcess is the process of a victim that leads.
type victimProcess struct{ cmd *exec.Cmd }

// start starts a victim, and returns when it leads.
func (v victim) start(ctx context.Context) (*victimProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	p := &victimProcess{exec.CommandContext(ctx, self)}
	p.cmd.Env = append(os.Environ(), envVictim+"="+string(text))
	p.cmd.Stderr = os.Stderr
	_, err1 := p.cmd.StdinPipe() // it ends with this process
	out, err2 := p.cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		p.kill()
		return nil, errors.Join(ctx.Err(), fmt.Errorf("the leader to be killed does not lead: %w", err))
	}
	return p, nil
}

// kill kills the process, if that has not been done, and waits for its end.
func (p *victimProcess) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
}

// Victim leads and does not return, if this process was started to be killed.
func Victim() {
	text, is := os.LookupEnv(envVictim)
	if !is {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // the parent is gone
	}()
	var v victim
	err := json.Unmarshal([]byte(text), &v)
	if err == nil {
		err = v.lead(context.Background())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// lead leads, says so, and goes on until the process is killed.
func (v victim) lead(ctx context.Context) error {
	p, err := openElections(ctx, v.Contender, v.Addr)
	if err != nil {
		return err
	}
	return p.Lock(v.Name).Pair(ctx, func() {
		fmt.Println("leads")
		<-ctx.Done()
	})
}
