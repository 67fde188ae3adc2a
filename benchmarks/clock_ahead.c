/* A wall clock that is ahead by the seconds in the file that CLOCK_AHEAD_FILE names; if a process's
   number follows them, in that process alone.

   For LD_PRELOAD. Clocks that only go on, and sleeping by them, stay the kernel's. */

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long ahead(void) {
  const char *path = getenv("CLOCK_AHEAD_FILE");
  FILE *file = path ? fopen(path, "r") : NULL;
  long seconds = 0, process = 0;
  if (file) {
    int found = fscanf(file, "%ld %ld", &seconds, &process);
    if (found < 1 || (found == 2 && process != getpid())) seconds = 0;
    fclose(file);
  }
  return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *found) {
  long failed = syscall(SYS_clock_gettime, clock, found);
  if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    found->tv_sec += ahead();
  return (int)failed;
}

int gettimeofday(struct timeval *restrict found, void *restrict zone) {
  long failed = syscall(SYS_gettimeofday, found, zone);
  if (!failed) found->tv_sec += ahead();
  return (int)failed;
}

time_t time(time_t *found) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (found) *found = now.tv_sec;
  return now.tv_sec;
}
