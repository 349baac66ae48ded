// The wall clock at another rate, for a process that this is preloaded into:
// CLOCK_RATE times that of the machine's, from the process's first look at it.
// (libfaketime does the same, but not in a server that allocates with jemalloc.)

#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long shown(void) {
	static long long began;
	static double rate = 1;
	struct timespec t;
	syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
	long long now = t.tv_sec * 1000000000LL + t.tv_nsec;
	if (began == 0) {
		const char *set = getenv("CLOCK_RATE");
		if (set != NULL) {
			rate = atof(set);
		}
		began = now;
	}
	return began + (long long)((now - began) * rate);
}

int clock_gettime(clockid_t id, struct timespec *t) {
	if (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE) {
		return syscall(SYS_clock_gettime, id, t);
	}
	long long now = shown();
	t->tv_sec = now / 1000000000;
	t->tv_nsec = now % 1000000000;
	return 0;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
	(void)zone;
	long long now = shown() / 1000;
	t->tv_sec = now / 1000000;
	t->tv_usec = now % 1000000;
	return 0;
}

time_t time(time_t *t) {
	time_t now = shown() / 1000000000;
	if (t != NULL) {
		*t = now;
	}
	return now;
}
