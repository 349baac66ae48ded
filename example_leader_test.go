package holdfast_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/leader"
)

// A process campaigns for as long as it runs. Its scheduler runs in one of them.
func ExampleClient_Leader() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	election := client.Leader("scheduler", leader.Value("10.1.2.3:8080"), leader.Lease(10*time.Second))
	err := election.Run(ctx, func(ctx context.Context, term *leader.Term) error {
		for ctx.Err() == nil {
			term.Alive(time.Minute) // a step that hangs ends the term
			step(ctx, term.Token())
		}
		return nil
	})
	log.Print(err)
}

// step is one step of the work. With the token the resource can refuse a leader that was overtaken.
func step(ctx context.Context, token int64) {
	select {
	case <-time.After(time.Second):
		fmt.Println("scheduled with the token", token)
	case <-ctx.Done():
	}
}

// Another process follows who leads, without being a candidate.
func ExampleClient_Leader_observe() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()

	for info := range client.Leader("scheduler").Observe(context.Background()) {
		if !info.Leads() {
			log.Print("nobody leads")
			continue
		}
		log.Printf("%s leads since %v, at %s", info.Identity, info.Since, info.Value)
	}
}

// Probes: only the leader gets requests, and a process whose work does not end is restarted.
func ExampleClient_Leader_probes() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()

	election := client.Leader("scheduler")
	http.Handle("/readyz", election.Handler())
	http.HandleFunc("/livez", func(w http.ResponseWriter, _ *http.Request) {
		if err := election.Check(time.Minute); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	log.Print(http.ListenAndServe(":8080", nil))
}
