"""Which system calls code in the sandbox may use, and their numbers on each machine.

This is an allow list: every other call fails with ENOSYS, so that calls of later kernels are
refused too, and a library that tries one falls back to an older call. Some of these are allowed
only with certain arguments or permissions: see `filters.py`.
"""

from __future__ import annotations

from typing import Final

__all__ = ["NETWORK", "NUMBERS", "PLAIN", "UNMEDIATED"]

# A name, its number on x86_64, its number on aarch64; a dash where the machine has none.
_TABLE: Final = """
read 0 63, write 1 64, open 2 -, openat 257 56, close 3 57, stat 4 -, fstat 5 80, lstat 6 -
newfstatat 262 79, statx 332 291, poll 7 -, ppoll 271 73, lseek 8 62, mmap 9 222
mprotect 10 226, munmap 11 215, brk 12 214, mremap 25 216, madvise 28 233, msync 26 227
mincore 27 232, mlock 149 228, munlock 150 229, mlock2 325 284, rt_sigaction 13 134
rt_sigprocmask 14 135, rt_sigreturn 15 139, rt_sigpending 127 136, rt_sigtimedwait 128 137
rt_sigsuspend 130 133, sigaltstack 131 132, restart_syscall 219 128, ioctl 16 29, pread64 17 67
pwrite64 18 68, readv 19 65, writev 20 66, preadv 295 69, pwritev 296 70, preadv2 327 286
pwritev2 328 287, access 21 -, faccessat 269 48, faccessat2 439 439, pipe 22 -, pipe2 293 59
select 23 -, pselect6 270 72, sched_yield 24 124, dup 32 23, dup2 33 -, dup3 292 24, pause 34 -
nanosleep 35 101, clock_nanosleep 230 115, getitimer 36 102, setitimer 38 103, alarm 37 -
getpid 39 172, getppid 110 173, gettid 186 178, gettimeofday 96 169, time 201 -
clock_gettime 228 113, clock_getres 229 114, times 100 153, sendfile 40 71, socket 41 198
socketpair 53 199, connect 42 203, accept 43 202, accept4 288 242, sendto 44 206
recvfrom 45 207, sendmsg 46 211, recvmsg 47 212, sendmmsg 307 269, recvmmsg 299 243
shutdown 48 210, bind 49 200, listen 50 201, getsockname 51 204, getpeername 52 205
setsockopt 54 208, getsockopt 55 209, clone 56 220, clone3 435 435, fork 57 -, vfork 58 -
execve 59 221, exit 60 93, exit_group 231 94, wait4 61 260, waitid 247 95, kill 62 129
tkill 200 130, tgkill 234 131, uname 63 160, fcntl 72 25, flock 73 32, fsync 74 82
fdatasync 75 83, sync_file_range 277 84, truncate 76 45, ftruncate 77 46, fallocate 285 47
fadvise64 221 223, getdents 78 -, getdents64 217 61, getcwd 79 17, chdir 80 49, fchdir 81 50
rename 82 -, renameat 264 38, renameat2 316 276, mkdir 83 -, mkdirat 258 34, rmdir 84 -
creat 85 -, link 86 -, linkat 265 37, unlink 87 -, unlinkat 263 35, symlink 88 -
symlinkat 266 36, readlink 89 -, readlinkat 267 78, chmod 90 -, fchmod 91 52, fchmodat 268 53
chown 92 -, fchown 93 55, lchown 94 -, fchownat 260 54, utime 132 -, utimes 235 -
futimesat 261 -, utimensat 280 88, umask 95 166, getxattr 191 8, lgetxattr 192 9
fgetxattr 193 10, listxattr 194 11, llistxattr 195 12, flistxattr 196 13, getrlimit 97 163
getrusage 98 165, sysinfo 99 179, getuid 102 174, getgid 104 176, geteuid 107 175
getegid 108 177, getresuid 118 148, getresgid 120 150, getgroups 115 158, getpgrp 111 -
getpgid 121 155, getsid 124 156, setpgid 109 154, setsid 112 157, capget 125 90, prctl 157 167
arch_prctl 158 -, prlimit64 302 261, statfs 137 43, fstatfs 138 44, getpriority 140 141
sched_getparam 143 121, sched_getscheduler 145 120, sched_get_priority_max 146 125
sched_get_priority_min 147 126, sched_rr_get_interval 148 127, sched_getaffinity 204 123
futex 202 98, futex_waitv 449 449, set_robust_list 273 99, get_robust_list 274 100
set_tid_address 218 96, rseq 334 293, membarrier 324 283, getcpu 309 168, getrandom 318 278
epoll_create 213 -, epoll_create1 291 20, epoll_ctl 233 21, epoll_wait 232 -, epoll_pwait 281 22
epoll_pwait2 441 441, eventfd 284 -, eventfd2 290 19, signalfd 282 -, signalfd4 289 74
timerfd_create 283 85, timerfd_settime 286 86, timerfd_gettime 287 87, timer_create 222 107
timer_settime 223 110, timer_gettime 224 108, timer_getoverrun 225 109, timer_delete 226 111
inotify_init 253 -, inotify_init1 294 26, inotify_add_watch 254 27, inotify_rm_watch 255 28
splice 275 76, tee 276 77, copy_file_range 326 285, close_range 436 436
pkey_alloc 330 289, pkey_free 331 290, pkey_mprotect 329 288
"""

# Allowed whatever the arguments: files by descriptor and path, memory, time, waiting, and
# asking about oneself. Where a path may lead is decided by mounts or by Landlock.
_PLAIN: Final = """
read write close stat fstat lstat newfstatat statx poll ppoll lseek mprotect munmap brk mremap
madvise msync mincore mlock munlock mlock2 rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending
rt_sigtimedwait rt_sigsuspend sigaltstack restart_syscall pread64 pwrite64 readv writev preadv
pwritev preadv2 pwritev2 access faccessat faccessat2 pipe pipe2 select pselect6 sched_yield dup
dup2 dup3 pause nanosleep clock_nanosleep getitimer setitimer alarm getpid getppid gettid
gettimeofday time clock_gettime clock_getres times sendfile sendto recvfrom sendmsg recvmsg
shutdown getsockname getpeername setsockopt getsockopt exit exit_group wait4 waitid uname flock
fsync fdatasync sync_file_range ftruncate fallocate fadvise64 getdents getdents64 getcwd chdir
fchdir rename renameat renameat2 mkdir mkdirat rmdir link linkat unlink unlinkat symlink symlinkat
readlink readlinkat umask getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr getrlimit
getrusage sysinfo getuid getgid geteuid getegid getresuid getresgid getgroups getpgrp getpgid
getsid capget arch_prctl statfs fstatfs getpriority sched_getparam sched_getscheduler
sched_get_priority_max sched_get_priority_min sched_rr_get_interval sched_getaffinity futex
futex_waitv set_robust_list get_robust_list set_tid_address rseq membarrier getcpu getrandom
epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd eventfd2 signalfd
signalfd4 timerfd_create timerfd_settime timerfd_gettime timer_create timer_settime timer_gettime
timer_getoverrun timer_delete splice tee copy_file_range close_range pkey_alloc pkey_free
pkey_mprotect
"""

# These reach any path or process that the user may, and Landlock does not ask about them.
_UNMEDIATED: Final = """
chmod fchmodat chown lchown fchownat utime utimes futimesat utimensat truncate setpgid setsid
inotify_init inotify_init1 inotify_add_watch inotify_rm_watch
"""

# On sockets that can reach another machine; a pair of sockets needs none of them.
_NETWORK: Final = "connect bind listen accept accept4 sendmmsg recvmmsg"


def _numbers(column: int) -> dict[str, int]:
    entries = [entry.split() for line in _TABLE.strip().splitlines() for entry in line.split(",")]
    return {entry[0]: int(entry[column]) for entry in entries if entry[column] != "-"}


NUMBERS: Final = {"x86_64": _numbers(1), "aarch64": _numbers(2)}
PLAIN: Final = tuple(_PLAIN.split())
UNMEDIATED: Final = tuple(_UNMEDIATED.split())
NETWORK: Final = tuple(_NETWORK.split())
