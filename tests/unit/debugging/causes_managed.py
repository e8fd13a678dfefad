"""Errors of Python, JavaScript and Java: each cause in variants, and near misses beside it.

The variants of a cause differ in paths, lines, values, prefixes and style. Two causes of one
language often share most of their words.
"""

from __future__ import annotations

from typing import Final

__all__ = ["MANAGED"]

PYTHON: Final = {
    "python: missing module": (
        """\
Traceback (most recent call last):
  File "/srv/shop/app/main.py", line 3, in <module>
    import yaml2
ModuleNotFoundError: No module named 'yaml2'
""",
        """\
2026-03-01T10:00:00.123Z ERROR Traceback (most recent call last):
2026-03-01T10:00:00.123Z ERROR   File "/home/ann/work/main.py", line 19, in <module>
2026-03-01T10:00:00.123Z ERROR     import yaml2
2026-03-01T10:00:00.123Z ERROR ModuleNotFoundError: No module named 'yaml2'
""",
    ),
    "python: another missing module": (
        """\
Traceback (most recent call last):
  File "/srv/shop/app/main.py", line 3, in <module>
    import yaml3
ModuleNotFoundError: No module named 'yaml3'
""",
    ),
    "python: key of a user": (
        """\
Traceback (most recent call last):
  File "C:\\Users\\ann\\shop\\cart.py", line 8, in total
    return prices[key]
           ~~~~~~^^^^^
KeyError: 'user_123'
""",
        """\
Traceback (most recent call last):
  File "/opt/shop/cart.py", line 80, in total
    return prices[key]
KeyError: 'user_99871'
""",
    ),
    "python: key of an order": (
        """\
Traceback (most recent call last):
  File "/opt/shop/cart.py", line 80, in total
    return prices[key]
KeyError: 'order_99871'
""",
    ),
    "python: inside a library": (
        """\
Traceback (most recent call last):
  File "/app/sync.py", line 12, in pull
    response = session.get(url, timeout=5)
  File "/usr/lib/python3/dist-packages/requests/sessions.py", line 602, in get
    return self.request("GET", url, **kwargs)
  File "/usr/lib/python3/dist-packages/requests/adapters.py", line 519, in send
    raise ConnectionError(e, request=request)
requests.exceptions.ConnectionError: HTTPConnectionPool(host='10.1.2.3', port=8081): Max retries \
exceeded with url: /v1/items?page=2 (Caused by NewConnectionError('<urllib3.connection.\
HTTPConnection object at 0x7f1c2a3b4d50>: Failed to establish a new connection: [Errno 111] \
Connection refused'))
""",
        """\
Traceback (most recent call last):
  File "/builds/x1/sync.py", line 44, in pull
    response = session.get(url, timeout=5)
  File "/venv/lib/python3.12/site-packages/requests/sessions.py", line 611, in get
    return self.request("GET", url, **kwargs)
  File "/venv/lib/python3.12/site-packages/requests/sessions.py", line 589, in request
    resp = self.send(prep, **send_kwargs)
  File "/venv/lib/python3.12/site-packages/requests/adapters.py", line 700, in send
    raise ConnectionError(e, request=request)
requests.exceptions.ConnectionError: HTTPConnectionPool(host='shop.internal', port=9000): Max \
retries exceeded with url: /v1/items?page=31 (Caused by NewConnectionError('<urllib3.connection.\
HTTPConnection object at 0x10b2f3e80>: Failed to establish a new connection: [Errno 111] \
Connection refused'))
""",
    ),
    "python: handled and raised again": (
        """\
Traceback (most recent call last):
  File "/a/jobs.py", line 5, in run
    step(n)
  File "/a/jobs.py", line 2, in step
    raise TimeoutError(f"no answer in {n}s")
TimeoutError: no answer in 30s

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/a/jobs.py", line 9, in <module>
    run(30)
  File "/a/jobs.py", line 7, in run
    raise JobFailed(f"job {n} gave up")
__main__.JobFailed: job 30 gave up
""",
        """\
Traceback (most recent call last):
  File "/b/c/jobs.py", line 55, in run
    step(n)
  File "/b/c/jobs.py", line 52, in step
    raise TimeoutError(f"no answer in {n}s")
TimeoutError: no answer in 1.5s

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/b/c/jobs.py", line 59, in <module>
    run(1.5)
  File "/b/c/jobs.py", line 57, in run
    raise JobFailed(f"job {n} gave up")
JobFailed: job 1.5 gave up
""",
    ),
    "python: exception group": (
        """\
  + Exception Group Traceback (most recent call last):
  |   File "/app/fan.py", line 20, in <module>
  |     asyncio.run(main())
  | ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/app/fan.py", line 5, in fetch
    |     raise ValueError(f"bad page {n}")
    | ValueError: bad page 3
    +---------------- 2 ----------------
    | Traceback (most recent call last):
    |   File "/app/fan.py", line 9, in store
    |     raise OSError(28, "No space left on device")
    | OSError: [Errno 28] No space left on device
    +------------------------------------
""",
        """\
  + Exception Group Traceback (most recent call last):
  |   File "/home/bo/fan.py", line 120, in <module>
  |     asyncio.run(main())
  | ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/home/bo/fan.py", line 105, in fetch
    |     raise ValueError(f"bad page {n}")
    | ValueError: bad page 77
    +---------------- 2 ----------------
    | Traceback (most recent call last):
    |   File "/home/bo/fan.py", line 109, in store
    |     raise OSError(28, "No space left on device")
    | OSError: [Errno 28] No space left on device
    +------------------------------------
""",
    ),
    "python: syntax": (
        (
            '  File "/x/conf.py", line 3\n    call(1, 2\n        ^\n'
            "SyntaxError: '(' was never closed\n"
        ),
        (
            '  File "/home/u/y/conf.py", line 99\n    call(1,\n        ^\n'
            "SyntaxError: '(' was never closed\n"
        ),
    ),
    "python: other syntax": (
        (
            '  File "/x/conf.py", line 3\n    call(1, 2]\n             ^\n'
            "SyntaxError: closing parenthesis ']' does not match opening parenthesis '('\n"
        ),
    ),
    "python: failed assertion in pytest": (
        """\
=================================== FAILURES ===================================
_________________________________ test_total ___________________________________

    def test_total():
>       assert total([1, 2]) == 4
E       assert 3 == 4
E        +  where 3 = total([1, 2])

tests/test_cart.py:12: AssertionError
=========================== short test summary info ============================
FAILED tests/test_cart.py::test_total - assert 3 == 4
""",
        """\
_________________________________ test_total ___________________________________
tests/test_cart.py:77: in test_total
    assert total([1, 2]) == 4
E   assert 19 == 21
E    +  where 19 = total([8, 11])
""",
    ),
    "python: state of a model": (
        """\
Traceback (most recent call last):
  File "/w/train.py", line 61, in main
    net.load_state_dict(torch.load(path))
  File "/opt/conda/lib/python3.10/site-packages/torch/nn/modules/module.py", line 2041, in load_state_dict
    raise RuntimeError('Error(s) in loading state_dict for {}:\\n\\t{}'.format(
RuntimeError: Error(s) in loading state_dict for Net:
	Missing key(s) in state_dict: "head.weight", "head.bias".
""",
        """\
Traceback (most recent call last):
  File "/home/z/train.py", line 88, in main
    net.load_state_dict(torch.load(path))
  File "/usr/local/lib/python3.11/dist-packages/torch/nn/modules/module.py", line 2153, in load_state_dict
    raise RuntimeError('Error(s) in loading state_dict for {}:\\n\\t{}'.format(
RuntimeError: Error(s) in loading state_dict for Net:
	Missing key(s) in state_dict: "head.weight", "head.bias".
""",
    ),
    "python: other state of a model": (
        """\
Traceback (most recent call last):
  File "/w/train.py", line 61, in main
    net.load_state_dict(torch.load(path))
RuntimeError: Error(s) in loading state_dict for Net:
	size mismatch for head.weight: copying a param with shape torch.Size([10, 5])
""",
    ),
    "python: memory of the card": (
        """\
Traceback (most recent call last):
  File "/w/train.py", line 30, in step
    loss.backward()
torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.79 GiB \
total capacity; 5.12 GiB already allocated; 11.75 MiB free)
""",
        """\
Traceback (most recent call last):
  File "/w/train.py", line 41, in step
    loss.backward()
torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB (GPU 3; 23.69 GiB \
total capacity; 21.80 GiB already allocated; 900.00 KiB free)
""",
    ),
    "python: in a notebook": (
        """\
---------------------------------------------------------------------------
KeyError                                  Traceback (most recent call last)
Cell In[5], line 1
----> 1 load("a")

File ~/proj/data.py:12, in load(name)
     10 def load(name):
     11     # look it up
---> 12     return TABLES[name]

KeyError: 'a'
""",
        """\
---------------------------------------------------------------------------
KeyError                                  Traceback (most recent call last)
Cell In[31], line 1
----> 1 load("a")

File /home/u/x/proj/data.py:40, in load(name)
     39     # look it up
---> 40     return TABLES[name]

KeyError: 'a'
""",
    ),
}

JAVASCRIPT: Final = {
    "node: missing module": (
        """\
node:internal/modules/cjs/loader:1143
  throw err;
  ^

Error: Cannot find module 'express'
Require stack:
- /home/ann/api/server.js
    at Module._resolveFilename (node:internal/modules/cjs/loader:1140:15)
    at Module._load (node:internal/modules/cjs/loader:981:27)
    at Object.<anonymous> (/home/ann/api/server.js:3:17) {
  code: 'MODULE_NOT_FOUND',
  requireStack: [ '/home/ann/api/server.js' ]
}

Node.js v18.19.0
""",
        """\
internal/modules/cjs/loader.js:892
  throw err;
  ^

Error: Cannot find module 'express'
Require stack:
- /builds/77/server.js
    at Function.Module._resolveFilename (internal/modules/cjs/loader.js:889:15)
    at Function.Module._load (internal/modules/cjs/loader.js:745:27)
    at Object.<anonymous> (/builds/77/server.js:11:1) {
  code: 'MODULE_NOT_FOUND',
  requireStack: [ '/builds/77/server.js' ]
}
""",
    ),
    "node: other missing module": (
        """\
Error: Cannot find module 'expresso'
Require stack:
- /home/ann/api/server.js
    at Module._resolveFilename (node:internal/modules/cjs/loader:1140:15)
    at Object.<anonymous> (/home/ann/api/server.js:3:17) {
  code: 'MODULE_NOT_FOUND'
}
""",
    ),
    "node: missing file": (
        """\
Error: ENOENT: no such file or directory, open '/srv/app/config/prod.json'
    at Object.openSync (node:fs:601:3)
    at readConfig (/srv/app/src/config.js:12:15)
    at main (/srv/app/src/index.js:4:3) {
  errno: -2,
  syscall: 'open',
  code: 'ENOENT',
  path: '/srv/app/config/prod.json'
}
""",
        """\
web_1  | Error: ENOENT: no such file or directory, open 'C:\\\\work\\\\config\\\\prod.json'
web_1  |     at Object.openSync (fs.js:498:3)
web_1  |     at readConfig (C:\\work\\src\\config.js:33:2)
web_1  |     at main (C:\\work\\src\\index.js:40:30) {
web_1  |   errno: -4058,
web_1  |   code: 'ENOENT'
web_1  | }
""",
    ),
    "node: no server for the database": (
        """\
Error: connect ECONNREFUSED 127.0.0.1:5432
    at connect (/app/db.js:9:11)
    at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1494:16) {
  errno: -111,
  code: 'ECONNREFUSED',
  syscall: 'connect',
  address: '127.0.0.1',
  port: 5432
}
""",
        """\
Error: connect ECONNREFUSED ::1:5432
    at connect (/usr/src/db.js:19:1)
    at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1555:16) {
  errno: -111,
  code: 'ECONNREFUSED',
  syscall: 'connect',
  address: '::1',
  port: 5432
}
""",
    ),
    "node: no server for the cache": (
        """\
Error: connect ECONNREFUSED 127.0.0.1:6379
    at connect (/app/db.js:9:11)
    at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1494:16)
""",
    ),
    "browser: property of undefined": (
        """\
Uncaught TypeError: Cannot read properties of undefined (reading 'map')
    at List (https://shop.example.com/static/js/main.3f2a1b9c.js:1:23456)
    at renderWithHooks (webpack-internal:///./node_modules/react-dom/index.js:14985:18)
""",
        """\
TypeError: Cannot read properties of undefined (reading 'map')
    at List (http://localhost:3000/static/js/main.b81c77.js:2:99)
    at renderWithHooks (webpack-internal:///./node_modules/react-dom/index.js:15001:18)
""",
    ),
    "browser: other property of undefined": (
        """\
Uncaught TypeError: Cannot read properties of undefined (reading 'filter')
    at List (https://shop.example.com/static/js/main.3f2a1b9c.js:1:23456)
""",
    ),
    "node: rejected promise": (
        """\
(node:4312) UnhandledPromiseRejectionWarning: AxiosError: Request failed with status code 503
    at settle (/app/node_modules/axios/lib/core/settle.js:19:12)
    at async fetchPrices (/app/src/prices.js:7:20)
""",
        """\
AxiosError: Request failed with status code 503
    at settle (/x/node_modules/axios/lib/core/settle.js:21:9)
    at async fetchPrices (/x/src/prices.js:70:2)
""",
    ),
    "node: other status": (
        """\
AxiosError: Request failed with status code 401
    at settle (/x/node_modules/axios/lib/core/settle.js:21:9)
    at async fetchPrices (/x/src/prices.js:70:2)
""",
    ),
    "typescript: argument": (
        (
            "src/cart.ts(12,5): error TS2345: Argument of type 'string' is not assignable to "
            "parameter of type 'number'.\n"
        ),
        (
            "\x1b[96msrc/shop/cart.ts\x1b[0m:\x1b[93m99\x1b[0m:\x1b[93m17\x1b[0m - \x1b[91merror"
            "\x1b[0m\x1b[90m TS2345: \x1b[0mArgument of type 'string' is not assignable to parameter "
            "of type 'number'.\n\n99   add('1')\n         ~~~\n\nFound 1 error in cart.ts:99\n"
        ),
    ),
    "typescript: name": (
        "src/cart.ts(12,5): error TS2304: Cannot find name 'total'.\n",
        "packages/a/src/cart.ts:7:1 - error TS2304: Cannot find name 'total'.\n",
    ),
    "typescript: other name": ("src/cart.ts(12,5): error TS2304: Cannot find name 'sum'.\n",),
    "npm: conflict": (
        """\
npm ERR! code ERESOLVE
npm ERR! ERESOLVE could not resolve
npm ERR! While resolving: shop@1.2.3
npm ERR! A complete log of this run can be found in: /root/.npm/_logs/2026-01-02T03_04_05_678Z-debug-0.log
""",
        """\
npm error code ERESOLVE
npm error ERESOLVE could not resolve
npm error While resolving: shop@1.9.0
npm error A complete log of this run can be found in: /home/u/.npm/_logs/2025-11-12T13_14_15_161Z-debug-0.log
""",
    ),
}

JAVA: Final = {
    "java: null": (
        """\
Exception in thread "main" java.lang.NullPointerException: Cannot invoke "String.length()" \
because "<local1>" is null
	at com.shop.Cart.size(Cart.java:14)
	at com.shop.Main.main(Main.java:5)
""",
        """\
2026-02-03 04:05:06,789 [http-nio-8080-exec-4] ERROR com.shop.Api - request 77 failed
java.lang.NullPointerException: Cannot invoke "String.length()" because "<local4>" is null
	at com.shop.Cart.size(Cart.java:120) ~[classes/:na]
	at com.shop.Main.main(Main.java:50) ~[classes/:na]
	at java.base/jdk.internal.reflect.DirectMethodHandleAccessor.invoke(DirectMethodHandleAccessor.java:103)
	at org.springframework.web.servlet.FrameworkServlet.service(FrameworkServlet.java:897) ~[spring-webmvc-6.0.9.jar:6.0.9]
""",
    ),
    "java: with causes": (
        """\
java.lang.IllegalStateException: Failed to load ApplicationContext
	at com.shop.Boot.start(Boot.java:31)
	at com.shop.Boot.lambda$main$0(Boot.java:12)
	at com.shop.Boot$$Lambda$14/0x0000000800066840.run(Unknown Source)
	at com.shop.Boot.main(Boot.java:12)
Caused by: org.postgresql.util.PSQLException: Connection to db1.internal:5432 refused.
	at org.postgresql.core.v3.ConnectionFactoryImpl.openConnectionImpl(ConnectionFactoryImpl.java:319)
	at com.shop.Store.open(Store.java:77)
	... 3 more
Caused by: java.net.ConnectException: Connection refused
	at java.base/sun.nio.ch.Net.pollConnect(Native Method)
	... 12 common frames omitted
""",
        """\
java.lang.IllegalStateException: Failed to load ApplicationContext
	at com.shop.Boot.start(Boot.java:44)
	at com.shop.Boot.lambda$main$3(Boot.java:20)
	at com.shop.Boot$$Lambda$211/0x00007f1c1c0a1b28.run(Unknown Source)
	at com.shop.Boot.main(Boot.java:20)
Caused by: org.postgresql.util.PSQLException: Connection to 10.2.3.4:5432 refused.
	at org.postgresql.core.v3.ConnectionFactoryImpl.openConnectionImpl(ConnectionFactoryImpl.java:342)
	at com.shop.Store.open(Store.java:91)
	... 5 more
Caused by: java.net.ConnectException: Connection refused
	at java.base/sun.nio.ch.Net.connect0(Native Method)
	... 20 more
""",
    ),
    "java: with other causes": (
        """\
java.lang.IllegalStateException: Failed to load ApplicationContext
	at com.shop.Boot.start(Boot.java:31)
	at com.shop.Boot.lambda$main$0(Boot.java:12)
	at com.shop.Boot.main(Boot.java:12)
Caused by: org.yaml.snakeyaml.scanner.ScannerException: mapping values are not allowed here
	at com.shop.Settings.read(Settings.java:9)
	... 3 more
""",
    ),
    "java: proxies": (
        """\
java.lang.ArithmeticException: / by zero
	at com.shop.Price.of(Price.java:8)
	at com.shop.Service$$EnhancerBySpringCGLIB$$a1b2c3d4.price(<generated>)
	at com.sun.proxy.$Proxy12.price(Unknown Source)
	at com.shop.Api$1.call(Api.java:19)
""",
        """\
java.lang.ArithmeticException: / by zero
	at com.shop.Price.of(Price.java:9)
	at com.shop.Service$$EnhancerBySpringCGLIB$$99ffee11.price(<generated>)
	at com.sun.proxy.$Proxy201.price(Unknown Source)
	at com.shop.Api$2.call(Api.java:21)
""",
    ),
    "java: class not found": (
        (
            "java.lang.ClassNotFoundException: com.mysql.cj.jdbc.Driver\n"
            "\tat java.base/java.net.URLClassLoader.findClass(URLClassLoader.java:445)\n"
            "\tat com.shop.Store.open(Store.java:20)\n"
        ),
        (
            "java.lang.ClassNotFoundException: com.mysql.cj.jdbc.Driver\n"
            "\tat java.base/jdk.internal.loader.BuiltinClassLoader.loadClass(BuiltinClassLoader.java:641)\n"
            "\tat com.shop.Store.open(Store.java:28)\n"
        ),
    ),
    "java: other class not found": (
        "java.lang.ClassNotFoundException: org.h2.Driver\n\tat com.shop.Store.open(Store.java:20)\n",
    ),
    "javac: symbol": (
        (
            "src/Cart.java:9: error: cannot find symbol\n    return totl;\n           ^\n"
            "  symbol:   variable totl\n  location: class Cart\n1 error\n"
        ),
        (
            "[ERROR] /home/u/p/src/main/java/Cart.java:90: error: cannot find symbol\n"
            "        return totl;\n               ^\n  symbol:   variable totl\n  location: class Cart\n"
        ),
    ),
    "javac: other symbol": (
        (
            "src/Cart.java:9: error: cannot find symbol\n    return summ;\n           ^\n"
            "  symbol:   variable summ\n  location: class Cart\n1 error\n"
        ),
    ),
}

MANAGED: Final = {**PYTHON, **JAVASCRIPT, **JAVA}
