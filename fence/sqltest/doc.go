// Package sqltest tests fence.SQL on SQLite and on PostgreSQL. It is a module of its own, so that their drivers
// do not reach those who import Holdfast.
package sqltest
