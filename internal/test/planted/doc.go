// Package planted shows that the test suite is awake: it plants known bugs,
// one at a time, and demands that the tests which are there for each fail.
//
// A bug is a small patch of one declaration, written down as data: bugs_test.go has them
// all. None of them touches the checkout: the go command is given patched copies
// by -overlay. All bugs are in one build, each behind a switch that the environment turns
// (switch_test.go), so that a bug costs a run of the tests that must catch it and no build.
// A bug that cannot stand beside what it replaces, such as one in a constant, has a build
// of its own.
//
//	go test ./internal/test/planted                   each patch still fits
//	go test ./internal/test/planted -planted=quick    a sample is planted
//	go test ./internal/test/planted -planted=virtual  all that are caught without servers
//	go test ./internal/test/planted -planted=all      all are, each in its step
//	go test ./internal/test/planted -planted=all -in rlock,latch
//	                                                  all that the tests in rlock and latch must catch
//
// Some bugs the torture must see without any test that was written for them:
//
//	go test ./internal/test/planted -planted=torture
//
// And with each call that may go out in a bundle sent so, also alone, whole suites must pass:
//
//	go test ./internal/test/planted -planted=bundled
//
// A bug that survives is a test that is missing.
package planted
