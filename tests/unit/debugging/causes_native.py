"""Errors of Go, Rust, C and C++: each cause in variants, and near misses beside it."""

from __future__ import annotations

from typing import Final

__all__ = ["NATIVE"]

GO: Final = {
    "go: index": (
        """\
panic: runtime error: index out of range [5] with length 3

goroutine 1 [running]:
main.(*Cart).item(0xc000012345, 0x5)
	/home/ann/shop/cart.go:12 +0x1d
main.main()
	/home/ann/shop/main.go:8 +0x27
exit status 2
""",
        """\
panic: runtime error: index out of range [17] with length 4 [recovered]
	panic: runtime error: index out of range [17] with length 4

goroutine 35 [running]:
testing.tRunner.func1.2({0x5a1b20, 0xc0000a4018})
	/usr/local/go/src/testing/testing.go:1526 +0x24e
main.(*Cart).item(...)
	/builds/9/cart.go:44
main.main()
	/builds/9/main.go:80 +0x99

goroutine 6 [select]:
main.poll(0x0)
	/builds/9/poll.go:3 +0x11
""",
    ),
    "go: nil": (
        """\
panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x48f2a6]

goroutine 1 [running]:
main.(*Cart).item(0x0, 0x5)
	/home/ann/shop/cart.go:12 +0x1d
main.main()
	/home/ann/shop/main.go:8 +0x27
""",
        """\
panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0x2 addr=0x18 pc=0x104f3c1d8]

goroutine 1 [running]:
main.(*Cart).item(...)
	/Users/bo/shop/cart.go:120
main.main()
	/Users/bo/shop/main.go:81 +0x4c
""",
    ),
    "go: closure": (
        """\
panic: send on closed channel

goroutine 19 [running]:
main.start.func1(0x3)
	/a/start.go:9 +0x30
created by main.start in goroutine 1
	/a/start.go:8 +0x5e
""",
        """\
panic: send on closed channel

goroutine 4711 [running]:
main.start.func2.1()
	/b/start.go:19 +0x31
created by main.start in goroutine 17
	/b/start.go:18 +0x60
""",
    ),
    "go: deadlock": (
        (
            "fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [chan receive]:\n"
            "main.main()\n\t/a/main.go:5 +0x2d\nexit status 2\n"
        ),
        (
            "fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [semacquire]:\n"
            "sync.runtime_Semacquire(0xc0000b2014)\n\t/usr/local/go/src/runtime/sema.go:62 +0x25\n"
            "main.main()\n\t/z/main.go:50 +0x2d\n"
        ),
    ),
    "go: undefined": (
        "# example.com/shop\n./cart.go:12:9: undefined: totl\n",
        "# example.com/shop\ninternal/cart/cart.go:99:2: undefined: totl\nmake: *** [Makefile:3: build] Error 1\n",
    ),
    "go: other undefined": ("# example.com/shop\n./cart.go:12:9: undefined: summ\n",),
    "go: package": (
        "main.go:4:2: no required module provides package github.com/acme/cart2; to add it:\n\tgo get github.com/acme/cart2\n",
        "cmd/main.go:14:5: no required module provides package github.com/acme/cart2; to add it:\n\tgo get github.com/acme/cart2\n",
    ),
    "go: other package": (
        "main.go:4:2: no required module provides package github.com/acme/cart3; to add it:\n\tgo get github.com/acme/cart3\n",
    ),
    "go: host": (
        '2026/01/02 03:04:05 Get "https://api.shop.io/v1/a": dial tcp: lookup api.shop.io on 10.0.0.2:53: no such host\n',
        '2025/11/12 13:14:15 Get "https://api.shop.dev/v1/b?c=2": dial tcp: lookup api.shop.dev on 192.168.1.1:53: no such host\n',
    ),
}

RUST: Final = {
    "rust: index": (
        (
            "thread 'main' panicked at src/cart.rs:4:5:\nindex out of bounds: the len is 3 but the index is 5\n"
            "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n"
        ),
        (
            "thread 'tokio-runtime-worker' (4242) panicked at 'index out of bounds: the len is 10 but the index is 99', src/cart.rs:40:15\n"
            "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n"
        ),
    ),
    "rust: unwrap": (
        "thread 'main' panicked at src/cart.rs:4:5:\ncalled `Option::unwrap()` on a `None` value\n",
        "thread 'w-3' panicked at /build/x/src/cart.rs:14:50:\ncalled `Option::unwrap()` on a `None` value\n",
    ),
    "rust: with a backtrace": (
        """\
thread 'main' panicked at src/main.rs:9:44:
called `Result::unwrap()` on an `Err` value: Os { code: 2, kind: NotFound, message: "No such file or directory" }
stack backtrace:
   0: rust_begin_unwind
             at /rustc/90b35a6239c3d8bdabc530a6a0816f7ff89a0aaf/library/std/src/panicking.rs:645:5
   1: core::panicking::panic_fmt
             at /rustc/90b35a6239c3d8bdabc530a6a0816f7ff89a0aaf/library/core/src/panicking.rs:72:14
   2: shop::config::load
             at ./src/config.rs:9:44
   3: shop::main::{{closure}}
             at ./src/main.rs:5:5
   4: shop::main
             at ./src/main.rs:5:5
   5: core::ops::function::FnOnce::call_once
             at /rustc/90b35a6239c3d8bdabc530a6a0816f7ff89a0aaf/library/core/src/ops/function.rs:250:5
note: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.
""",
        """\
thread 'main' panicked at src/main.rs:19:4:
called `Result::unwrap()` on an `Err` value: Os { code: 2, kind: NotFound, message: "No such file or directory" }
stack backtrace:
   0:     0x55d0c1a3b2c1 - std::backtrace_rs::backtrace::libunwind::trace::h1a2b3c4d5e6f7a8b
                               at /rustc/aabbccddeeff/library/std/src/backtrace.rs:93:5
   1:     0x55d0c1a3b2d2 - shop::config::load::h99ffee0011223344
                               at /home/u/shop/src/config.rs:19:4
   2:     0x55d0c1a3b2e3 - shop::main::{closure#0}::h0011223344556677
                               at /home/u/shop/src/main.rs:6:5
   3:     0x55d0c1a3b2f4 - shop::main::h8899aabbccddeeff
                               at /home/u/shop/src/main.rs:6:5
""",
    ),
    "rust: other errno": (
        """\
thread 'main' panicked at src/main.rs:9:44:
called `Result::unwrap()` on an `Err` value: Os { code: 13, kind: PermissionDenied, message: "Permission denied" }
stack backtrace:
   0: shop::config::load
             at ./src/config.rs:9:44
   1: shop::main::{{closure}}
             at ./src/main.rs:5:5
   2: shop::main
             at ./src/main.rs:5:5
""",
    ),
    "rustc: mismatch": (
        (
            'error[E0308]: mismatched types\n --> src/main.rs:2:18\n  |\n2 |     let x: i32 = "a";\n'
            "  |            ---   ^^^ expected `i32`, found `&str`\n  |            |\n  |            expected due to this\n\n"
            "error: aborting due to previous error\n\nFor more information about this error, try `rustc --explain E0308`.\n"
        ),
        (
            "   Compiling shop v0.1.0 (/home/u/shop)\nerror[E0308]: mismatched types\n   --> src/cart/mod.rs:120:22\n    |\n"
            "120 |         let total: i32 = name;\n    |                    ---   ^^^^ expected `i32`, found `&str`\n\n"
            'error: could not compile `shop` (bin "shop") due to 1 previous error\n'
        ),
    ),
    "rustc: other mismatch": (
        (
            "error[E0308]: mismatched types\n --> src/main.rs:2:18\n  |\n2 |     let x: bool = 1;\n"
            "  |            ----   ^ expected `bool`, found integer\n"
        ),
    ),
    "rustc: crate": (
        (
            "error[E0432]: unresolved import `serde2`\n --> src/main.rs:1:5\n  |\n1 | use serde2::Deserialize;\n"
            "  |     ^^^^^^ use of undeclared crate or module `serde2`\n"
        ),
        (
            "error[E0432]: unresolved import `serde2`\n  --> src/lib.rs:11:5\n   |\n11 | use serde2::Serialize;\n"
            "   |     ^^^^^^ use of undeclared crate or module `serde2`\n"
        ),
    ),
    "rust: anyhow": (
        "Error: failed to read the configuration\n\nCaused by:\n    No such file or directory (os error 2)\n",
        "Error: failed to read the configuration\n\nCaused by:\n    0: No such file or directory (os error 2)\n",
    ),
    "rust: other anyhow": (
        "Error: failed to read the configuration\n\nCaused by:\n    Permission denied (os error 13)\n",
    ),
}

C: Final = {
    "gdb: segmentation fault": (
        """\
Program received signal SIGSEGV, Segmentation fault.
0x0000555555555139 in cart_total (cart=0x0) at cart.c:12
12	  return cart->total;
#0  0x0000555555555139 in cart_total (cart=0x0) at cart.c:12
#1  0x0000555555555160 in main (argc=1, argv=0x7fffffffe0a8) at main.c:5
""",
        """\
Thread 1 "shop" received signal SIGSEGV, Segmentation fault.
0x00005629c1f0a139 in cart_total (cart=0x10) at /home/u/src/cart.c:44
44	  return cart->total;
(gdb) bt
#0  0x00005629c1f0a139 in cart_total (cart=0x10) at /home/u/src/cart.c:44
#1  0x00005629c1f0a160 in main (argc=3, argv=0x7ffd1c2b3a48) at /home/u/src/main.c:9
#2  __libc_start_call_main (main=main@entry=0x5629c1f0a145 <main>, argc=argc@entry=3) at ../sysdeps/nptl/libc_start_call_main.h:58
""",
    ),
    "gdb: other function": (
        """\
Program received signal SIGSEGV, Segmentation fault.
#0  0x0000555555555139 in cart_free (cart=0x0) at cart.c:12
#1  0x0000555555555160 in main (argc=1, argv=0x7fffffffe0a8) at main.c:5
""",
    ),
    "asan: use after free": (
        """\
=================================================================
==12345==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000014 at pc 0x55a bp 0x7ff sp 0x7fe
READ of size 4 at 0x602000000014 thread T0
    #0 0x55a1b2c3d4e5 in use /src/cart.c:12:3
    #1 0x55a1b2c3d4f6 in main /src/main.c:5
    #2 0x7f1c2d3e4f50 in __libc_start_main (/lib/x86_64-linux-gnu/libc.so.6+0x21b97)

0x602000000014 is located 4 bytes inside of 100-byte region [0x602000000010,0x602000000074)
freed by thread T0 here:
    #0 0x7f00 in __interceptor_free ../../../../src/libsanitizer/asan/asan_malloc_linux.cpp:52
    #1 0x55a1b2c3d4e0 in main /src/main.c:4

previously allocated by thread T0 here:
    #0 0x7f00 in __interceptor_malloc ../../../../src/libsanitizer/asan/asan_malloc_linux.cpp:69
    #1 0x55a1b2c3d4d0 in main /src/main.c:3

SUMMARY: AddressSanitizer: heap-use-after-free /src/cart.c:12:3 in use
==12345==ABORTING
""",
        """\
==99==ERROR: AddressSanitizer: heap-use-after-free on address 0x60b0000000f4 at pc 0x1 bp 0x2 sp 0x3
WRITE of size 8 at 0x60b0000000f4 thread T3
    #0 0x10 in use /home/u/x/cart.c:120:30
    #1 0x20 in main /home/u/x/main.c:50
""",
    ),
    "asan: overflow": (
        (
            "==12345==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602 at pc 0x55a bp 0x7ff sp 0x7fe\n"
            "READ of size 4 at 0x602000000014 thread T0\n    #0 0x55a1b2c3d4e5 in use /src/cart.c:12:3\n"
            "    #1 0x55a1b2c3d4f6 in main /src/main.c:5\n"
        ),
    ),
    "ubsan: overflow": (
        "cart.c:12:5: runtime error: signed integer overflow: 2147483647 + 1 cannot be represented in type 'int'\n",
        "/home/u/src/cart.c:99:17: runtime error: signed integer overflow: 2147483600 + 77 cannot be represented in type 'int'\n",
    ),
    "gcc: undeclared": (
        (
            "cart.c: In function ‘total’:\ncart.c:12:10: error: ‘summ’ undeclared (first use in this function); did you mean ‘sum’?\n"
            "   12 |   return summ;\n      |          ^~~~\n"
        ),
        (
            "/tmp/b/cart.c: In function 'total':\n/tmp/b/cart.c:99:3: error: 'summ' undeclared (first use in this function); did you mean 'sum'?\n"
            "make[2]: *** [Makefile:8: cart.o] Error 1\nmake: *** [Makefile:3: all] Error 2\n"
        ),
    ),
    "gcc: other undeclared": (
        "cart.c:12:10: error: 'totl' undeclared (first use in this function); did you mean 'total'?\n",
    ),
    "gcc: header": (
        "cart.c:1:10: fatal error: zlib2.h: No such file or directory\n    1 | #include <zlib2.h>\n      |          ^~~~~~~~~\ncompilation terminated.\n",
        "src/cart.c:41:10: fatal error: zlib2.h: No such file or directory\ncompilation terminated.\n",
    ),
    "linker: reference": (
        "/usr/bin/ld: /tmp/ccAbCd12.o: in function `main':\nmain.c:(.text+0x15): undefined reference to `cart_open2'\ncollect2: error: ld returned 1 exit status\n",
        "/usr/bin/ld: main.o: in function `main':\n/home/u/main.c:9: undefined reference to `cart_open2'\n/usr/bin/ld: /home/u/main.c:12: undefined reference to `cart_open2'\ncollect2: error: ld returned 1 exit status\n",
    ),
    "linker: other reference": (
        "/usr/bin/ld: main.o: in function `main':\nmain.c:(.text+0x15): undefined reference to `cart_open3'\ncollect2: error: ld returned 1 exit status\n",
    ),
    "loader: library": (
        "./shop: error while loading shared libraries: libssl.so.1.1: cannot open shared object file: No such file or directory\n",
        "/opt/v2/bin/shop: error while loading shared libraries: libssl.so.1.1: cannot open shared object file: No such file or directory\n",
    ),
    "loader: other library": (
        "./shop: error while loading shared libraries: libssl.so.3: cannot open shared object file: No such file or directory\n",
    ),
    "c++: terminated": (
        "terminate called after throwing an instance of 'std::out_of_range'\n  what():  vector::_M_range_check: __n (which is 5) >= this->size() (which is 3)\nAborted (core dumped)\n",
        "terminate called after throwing an instance of 'std::out_of_range'\n  what():  vector::_M_range_check: __n (which is 99) >= this->size() (which is 0)\nAborted\n",
    ),
    "c++: otherwise terminated": (
        "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\nAborted (core dumped)\n",
    ),
    "c: assertion": (
        "shop: cart.c:12: cart_total: Assertion `cart != NULL' failed.\nAborted (core dumped)\n",
        "shop: /home/u/cart.c:120: cart_total: Assertion `cart != NULL' failed.\nAborted\n",
    ),
}

NATIVE: Final = {**GO, **RUST, **C}
