// The tour of examples/tour in a loop, with its metrics for Prometheus:
//
//	go run . -listen :9464
//	curl localhost:9464/metrics
//
// With REDIS_URL it runs on that server, without it on an embedded one. compose.yaml starts it beside
// a Prometheus and a Grafana.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/tour/scenes"
)

func main() {
	listen := flag.String("listen", "localhost:9464", "the `address` at which /metrics is served")
	pause := flag.Duration("pause", 2*time.Second, "how long from the end of a tour to the next one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *listen, *pause); err != nil {
		log.Fatal(err)
	}
}

// run serves the metrics, and repeats the tour until ctx ends.
func run(ctx context.Context, listen string, pause time.Duration) error {
	registry, options, err := metrics()
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Addr: listen, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.ListenAndServe() }()
	defer server.Close()
	for {
		// A check that does not hold is for the terminal. The metrics go on.
		if err := scenes.Run(ctx, io.Discard, os.Getenv("REDIS_URL"), nil, options...); err != nil {
			log.Print(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-served:
			return errors.Join(errors.New("the metrics are not served"), err)
		case <-time.After(pause):
		}
	}
}

// metrics returns a registry, and the options with which Clients record into it.
func metrics() (*prometheus.Registry, []holdfast.Option, error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	if err != nil {
		return nil, nil, err
	}
	return registry, []holdfast.Option{
		holdfast.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))),
		holdfast.WithMetricGroup(group),
	}, nil
}

// named matches the first part of a name of the tour, after the prefix that keeps tours on one
// server apart.
var named = regexp.MustCompile(`^(?:holdfast-tour:(?:[0-9a-f]{8}:)?)?([^:]*)`)

// group returns what a lock is about: "orders" of "orders:42".
func group(name string) string { return named.FindStringSubmatch(name)[1] }
