// The URLs of Sentinels: go-redis, Lettuce, Celery and others each have a form of their own.

package address

import (
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

var (
	errNoMaster = errors.New("the name of the master is missing: redis+sentinel://HOST:26379/MASTER")
	errMasters  = errors.New("it names two masters")
	errTwoUsers = errors.New("it has a user before the hosts and the options password and sentinel_password: leave out one of the three")
)

// behindSentinels reads the master's name from wherever it stands, and whose password stands before the hosts.
func (p *parts) behindSentinels() (*Address, error) {
	for _, name := range []string{"master", "mastername", "masterName", "master_set", "sentinel_master", "sentinelMasterId"} {
		p.rename(name, "master")
	}
	goRedis := p.query.Has("master_name")
	master, db, err := p.master()
	if err != nil {
		return nil, err
	}
	ofSentinels, err := p.sentinelsUser(goRedis)
	if err != nil {
		return nil, err
	}
	o, err := parsed(p, url.URL{Host: p.hosts[0].String(), Path: "/" + db}, redis.ParseFailoverURL)
	if err != nil {
		return nil, err
	}
	o.MasterName, o.SentinelAddrs = master, p.addresses()
	o.SentinelUsername, o.SentinelPassword = credentials(ofSentinels)
	if p.user != nil && p.user != ofSentinels {
		o.Username, o.Password = credentials(p.user)
	}
	return &Address{Sentinel: o, place: p.place() + "/" + master}, nil
}

// master returns the master's name, and the number of the database, as text, if it stands in the path.
func (p *parts) master() (master, db string, err error) {
	var named []string
	for _, name := range []string{"master_name", "master"} {
		named = append(named, p.query[name]...)
		p.query.Del(name)
	}
	named = append(named, p.fragment)
	segments := strings.FieldsFunc(p.path, func(r rune) bool { return r == '/' })
	if len(segments) > 2 {
		return "", "", errors.New("after the hosts stand the master's name and the number of a database: /MASTER/0")
	}
	for _, segment := range segments {
		if _, err := strconv.Atoi(segment); err == nil && db == "" {
			db = segment
			continue
		}
		named = append(named, segment)
	}
	for _, name := range named {
		if name != "" && master != "" && name != master {
			return "", "", errMasters
		}
		if name != "" {
			master = name
		}
	}
	if master == "" {
		return "", "", errNoMaster
	}
	if db != "" {
		_, err = database(db)
	}
	return master, db, err
}

// sentinelsUser returns the user and password of the Sentinels, or nil. The options sentinel_password and password say
// whose they are; what stands before the hosts is then the other's. If it stands there alone, it is the Sentinels' in
// go-redis's form, with master_name, and Redis's own in the forms of the others, as it is for them.
func (p *parts) sentinelsUser(goRedis bool) (*url.Userinfo, error) {
	own := p.query.Has("password") || p.query.Has("username")
	theirs := p.query.Has("sentinel_password") || p.query.Has("sentinel_username")
	user, password := p.query.Get("sentinel_username"), p.query.Get("sentinel_password")
	p.query.Del("sentinel_username")
	p.query.Del("sentinel_password")
	switch {
	case p.user != nil && own && theirs:
		return nil, errTwoUsers
	case theirs:
		return url.UserPassword(user, password), nil
	case own, goRedis:
		return p.user, nil
	}
	return nil, nil //nolint:nilnil // the Sentinels have no user
}

func credentials(u *url.Userinfo) (user, password string) {
	if u == nil {
		return "", ""
	}
	password, _ = u.Password()
	return u.Username(), password
}
