// The form of the compose file: no container engine runs it here.

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// compose is a compose file, as far as the tests read it.
type compose struct {
	Services map[string]service   `yaml:"services"`
	Volumes  map[string]yaml.Node `yaml:"volumes"`
}

type service struct {
	Image       string            `yaml:"image"`
	Command     []string          `yaml:"command"`
	WorkingDir  string            `yaml:"working_dir"`
	Environment map[string]string `yaml:"environment"`
	Volumes     []string          `yaml:"volumes"`
	Ports       []string          `yaml:"ports"`
	DependsOn   yaml.Node         `yaml:"depends_on"`
	Healthcheck map[string]any    `yaml:"healthcheck"`
}

func readCompose(t *testing.T) compose {
	t.Helper()
	text, err := os.Open("../compose.yaml")
	redistest.Must(t, err)
	defer text.Close()
	var c compose
	decoder := yaml.NewDecoder(text)
	decoder.KnownFields(true) // a key that is misspelled is an error
	redistest.Must(t, decoder.Decode(&c))
	return c
}

// mounts returns the folders that a service mounts, by where they are in its container.
func (c compose) mounts(t *testing.T, service string) map[string]string {
	t.Helper()
	folders := make(map[string]string)
	for _, volume := range c.Services[service].Volumes {
		parts := strings.Split(volume, ":")
		if strings.HasPrefix(parts[0], ".") {
			folders[parts[1]] = filepath.Join("..", parts[0])
		} else if _, there := c.Volumes[parts[0]]; !there {
			t.Errorf("%s mounts %s, which is not declared", service, parts[0])
		}
	}
	return folders
}

// An image without a version is another one tomorrow.
var pinned = regexp.MustCompile(`^[a-z0-9./-]+:v?\d+(\.\d+)+$`)

// Each service has an image with a version, mounts what is there, and depends on services.
func TestServices(t *testing.T) {
	c := readCompose(t)
	for name, service := range c.Services {
		if !pinned.MatchString(service.Image) {
			t.Errorf("%s: the image %q", name, service.Image)
		}
		for at, folder := range c.mounts(t, name) {
			if _, err := os.Stat(folder); err != nil {
				t.Errorf("%s, at %s: %v", name, at, err)
			}
		}
		var list []string
		var healthy map[string]struct{ Condition string }
		if service.DependsOn.Decode(&list) != nil && service.DependsOn.Decode(&healthy) != nil {
			t.Errorf("%s: depends_on is neither a list nor a map", name)
		}
		for on, what := range healthy {
			if what.Condition == "service_healthy" && c.Services[on].Healthcheck == nil {
				t.Errorf("%s waits until %s is healthy, which has no check", name, on)
			}
			list = append(list, on)
		}
		for _, on := range list {
			if _, there := c.Services[on]; !there {
				t.Errorf("%s depends on %s, which is no service", name, on)
			}
		}
	}
}

// The ways from one service to another: what is asked at which port.
func TestTheServicesFindEachOther(t *testing.T) {
	c := readCompose(t)
	var prometheus struct {
		ScrapeConfigs []struct {
			StaticConfigs []struct {
				Targets []string `yaml:"targets"`
			} `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	readYAML(t, "../prometheus/prometheus.yml", &prometheus)
	listen := c.Services["tour"].Command[slices.Index(c.Services["tour"].Command, "-listen")+1]
	if got := prometheus.ScrapeConfigs[0].StaticConfigs[0].Targets; !slices.Equal(got, []string{"tour" + listen}) {
		t.Errorf("Prometheus scrapes %q, and the tour listens at %q", got, listen)
	}

	var grafana struct {
		Datasources []struct{ URL string }
	}
	readYAML(t, "../grafana/provisioning/datasources/prometheus.yml", &grafana)
	if got := grafana.Datasources[0].URL; got != "http://prometheus:9090" {
		t.Errorf("Grafana asks %q", got)
	}
	if got := c.Services["tour"].Environment["REDIS_URL"]; got != "redis://redis:6379" {
		t.Errorf("the tour plays on %q", got)
	}
	if folder := c.mounts(t, "tour")["/src"]; c.Services["tour"].WorkingDir != "/src/deploy/tour" || folder != "../.." {
		t.Errorf("the tour starts in %s, of %s", c.Services["tour"].WorkingDir, folder)
	}
	if folder := c.mounts(t, "prometheus")["/etc/prometheus"]; folder != "../prometheus" {
		t.Errorf("Prometheus reads its configuration from %s", folder)
	}
}
