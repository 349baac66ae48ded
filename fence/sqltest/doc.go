// Package sqltest tests fence.SQL on SQLite and on PostgreSQL. Package sqltest is a module of its own,
// so that programs that import Holdfast do not get the drivers of these databases.
package sqltest
