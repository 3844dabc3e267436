/* Counts the file operations of a process below one directory, and ends the process, or fills its disk, at the N-th.

   Loaded before libc (LD_PRELOAD), so that it sees what Python, Arrow, DuckDB and PyTorch do alike. A write that is
   ended is half done. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char root[4096];
static long wanted;         /* the operation at which it happens; 0: never */
static int fills;           /* whether the disk is full from then on, instead of an end */
static atomic_long counted; /* operations so far */
static pid_t owner;         /* the process that is watched; not its children */

void kills_watch(const char *directory, long at, int full) {
    snprintf(root, sizeof root, "%s/", directory);
    wanted = at;
    fills = full;
    owner = getpid();
    atomic_store(&counted, 0);
}

long kills_counted(void) { return atomic_load(&counted); }

static int below(const char *path) { return path[0] && strncmp(path, root, strlen(root)) == 0; }

static int within(int directory, const char *path) {
    char whole[8192];
    if (!root[0] || owner != getpid() || path == NULL) return 0;
    if (path[0] == '/') return below(path);
    char link[64];
    if (directory == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
    else snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
    ssize_t size = readlink(link, whole, 4096);
    if (size < 0) return 0;
    snprintf(whole + size, sizeof whole - size, "/%s", path);
    return below(whole);
}

static int of_file(int descriptor) {
    char link[64], whole[4096];
    if (!root[0] || owner != getpid() || descriptor < 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, whole, sizeof whole - 1);
    if (size < 0) return 0;
    whole[size] = 0;
    return below(whole);
}

/* Returns 1 if the disk is full for this operation, 2 if the process is to end within it, else 0. */
static int step(int takes_room) {
    long now = atomic_fetch_add(&counted, 1) + 1;
    if (!wanted || now < wanted) return 0;
    if (fills) return takes_room;
    return now == wanted ? 2 : 0;
}

static void end(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = dlsym(RTLD_NEXT, #name)
#define BEFORE(inside, takes_room) \
    if (inside) switch (step(takes_room)) { \
        case 1: errno = ENOSPC; return -1; \
        case 2: end(); }

#define WRITES(flags) (((flags) & O_ACCMODE) != O_RDONLY)
#define OPENS(name) \
    int name(const char *path, int flags, ...) { \
        REAL(name); \
        mode_t mode = 0; \
        if (flags & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); } \
        BEFORE(WRITES(flags) && within(AT_FDCWD, path), (flags & O_CREAT) != 0) \
        return real(path, flags, mode); }
OPENS(open)
OPENS(open64)
#define OPENS_AT(name) \
    int name(int directory, const char *path, int flags, ...) { \
        REAL(name); \
        mode_t mode = 0; \
        if (flags & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); } \
        BEFORE(WRITES(flags) && within(directory, path), (flags & O_CREAT) != 0) \
        return real(directory, path, flags, mode); }
OPENS_AT(openat)
OPENS_AT(openat64)

ssize_t write(int descriptor, const void *content, size_t size) {
    REAL(write);
    if (of_file(descriptor)) switch (step(1)) {
        case 1: errno = ENOSPC; return -1;
        case 2: real(descriptor, content, size / 2); end(); }
    return real(descriptor, content, size);
}
ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    REAL(writev);
    BEFORE(of_file(descriptor), 1)
    return real(descriptor, parts, count);
}
#define WRITES_AT(name, place) \
    ssize_t name(int descriptor, const void *content, size_t size, place at) { \
        REAL(name); \
        if (of_file(descriptor)) switch (step(1)) { \
            case 1: errno = ENOSPC; return -1; \
            case 2: real(descriptor, content, size / 2, at); end(); } \
        return real(descriptor, content, size, at); }
WRITES_AT(pwrite, off_t)
WRITES_AT(pwrite64, off64_t)

#define ON_FILE(name, takes_room) \
    int name(int descriptor) { REAL(name); BEFORE(of_file(descriptor), takes_room) return real(descriptor); }
ON_FILE(fsync, 0)
ON_FILE(fdatasync, 0)
int ftruncate(int descriptor, off_t size) { REAL(ftruncate); BEFORE(of_file(descriptor), 0) return real(descriptor, size); }
int ftruncate64(int descriptor, off64_t size) { REAL(ftruncate64); BEFORE(of_file(descriptor), 0) return real(descriptor, size); }
int posix_fallocate(int descriptor, off_t from, off_t size) {
    REAL(posix_fallocate);
    if (of_file(descriptor)) switch (step(1)) { case 1: return ENOSPC; case 2: end(); }
    return real(descriptor, from, size);
}
int posix_fallocate64(int descriptor, off64_t from, off64_t size) {
    REAL(posix_fallocate64);
    if (of_file(descriptor)) switch (step(1)) { case 1: return ENOSPC; case 2: end(); }
    return real(descriptor, from, size);
}

int mkdir(const char *path, mode_t mode) { REAL(mkdir); BEFORE(within(AT_FDCWD, path), 1) return real(path, mode); }
int mkdirat(int directory, const char *path, mode_t mode) { REAL(mkdirat); BEFORE(within(directory, path), 1) return real(directory, path, mode); }
int rmdir(const char *path) { REAL(rmdir); BEFORE(within(AT_FDCWD, path), 0) return real(path); }
int unlink(const char *path) { REAL(unlink); BEFORE(within(AT_FDCWD, path), 0) return real(path); }
int unlinkat(int directory, const char *path, int flags) { REAL(unlinkat); BEFORE(within(directory, path), 0) return real(directory, path, flags); }
int rename(const char *from, const char *to) { REAL(rename); BEFORE(within(AT_FDCWD, to), 0) return real(from, to); }
int renameat(int one, const char *from, int other, const char *to) { REAL(renameat); BEFORE(within(other, to), 0) return real(one, from, other, to); }
int renameat2(int one, const char *from, int other, const char *to, unsigned flags) { REAL(renameat2); BEFORE(within(other, to), 0) return real(one, from, other, to, flags); }
int link(const char *from, const char *to) { REAL(link); BEFORE(within(AT_FDCWD, to), 1) return real(from, to); }
int linkat(int one, const char *from, int other, const char *to, int flags) { REAL(linkat); BEFORE(within(other, to), 1) return real(one, from, other, to, flags); }
