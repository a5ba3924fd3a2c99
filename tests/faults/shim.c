/* Tells of every write and sync of a process, in order, and can make one of them fail.

   LD_PRELOADed where strace is missing. A line a call begins, a line it ends:
       S <thread> <call> <offset> <length> <path of the descriptor>
       E <thread> <result>
   SHIM_LOG names the log. SHIM_FAIL="<call> <ending of the path> <n> <errno>" fails the n-th such
   call with that error, without making it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int log_fd = -1;
static char fail_call[32], fail_ending[64];
static int fail_at, fail_errno, seen;

__attribute__((constructor)) static void open_log(void) {
    const char *name = getenv("SHIM_LOG"), *fail = getenv("SHIM_FAIL");
    if (name) log_fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fail) sscanf(fail, "%31s %63s %d %d", fail_call, fail_ending, &fail_at, &fail_errno);
}

static void say(const char *format, ...) {
    char line[4300];
    va_list values;
    if (log_fd < 0) return;
    va_start(values, format);
    int length = vsnprintf(line, sizeof line, format, values);
    va_end(values);
    syscall(SYS_write, log_fd, line, length);
}

static long traced(const char *call, int fd, const void *data, size_t length, long offset, int number) {
    char link[64], path[4096];
    long result;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    path[size < 0 ? 0 : size] = 0;
    long thread = syscall(SYS_gettid);
    say("S %ld %s %ld %zu %s\n", thread, call, offset, length, path);
    size_t ending = strlen(fail_ending);
    if (fail_at && !strcmp(call, fail_call) && strlen(path) >= ending
        && !strcmp(path + strlen(path) - ending, fail_ending)
        && __sync_add_and_fetch(&seen, 1) == fail_at) {
        say("E %ld -1\n", thread);
        errno = fail_errno;
        return -1;
    }
    if (number == SYS_pwrite64) result = syscall(number, fd, data, length, offset);
    else if (number == SYS_write) result = syscall(number, fd, data, length);
    else result = syscall(number, fd);
    int error = errno;
    say("E %ld %ld\n", thread, result);
    errno = error;
    return result;
}

ssize_t write(int fd, const void *data, size_t n) { return traced("write", fd, data, n, -1, SYS_write); }
ssize_t pwrite(int fd, const void *data, size_t n, off_t at) { return traced("pwrite64", fd, data, n, at, SYS_pwrite64); }
ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at) { return traced("pwrite64", fd, data, n, at, SYS_pwrite64); }
int fsync(int fd) { return (int)traced("fsync", fd, NULL, 0, -1, SYS_fsync); }
int fdatasync(int fd) { return (int)traced("fdatasync", fd, NULL, 0, -1, SYS_fdatasync); }
