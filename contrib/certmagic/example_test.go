package holdcertmagic_test

import (
	"log"
	"net/http"

	"github.com/caddyserver/certmagic"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	holdcertmagic "github.com/holdfast-go/holdfast/contrib/certmagic"
)

// Several servers share a folder. One of them obtains the certificate, and the others read it.
func Example() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()

	shared := &certmagic.FileStorage{Path: "/mnt/certificates"}
	certmagic.Default.Storage = holdcertmagic.New(client, shared)
	log.Print(certmagic.HTTPS([]string{"example.com"}, http.NotFoundHandler()))
}
