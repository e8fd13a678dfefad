"""Errors of shells, Docker, HTTP and databases: each cause in variants, and near misses."""

from __future__ import annotations

from typing import Final

__all__ = ["SERVICES"]

SHELL: Final = {
    "shell: command": (
        "bash: kubectl2: command not found\n",
        "./deploy.sh: line 12: kubectl2: command not found\n",
        "zsh: command not found: kubectl2\n",
        "/bin/sh: 1: kubectl2: not found\n",
        "-bash: kubectl2: command not found\n",
    ),
    "shell: other command": ("bash: kubectl3: command not found\n", "sh: 9: kubectl3: not found\n"),
    "shell: permission": (
        "bash: ./deploy.sh: Permission denied\n",
        "/bin/bash: /home/ann/x/deploy.sh: Permission denied\n",
    ),
    "shell: missing file": (
        "cat: /etc/shop/settings.conf: No such file or directory\n",
        "cat: settings.conf: No such file or directory\n",
    ),
    "shell: other missing file": ("cat: /etc/shop/secrets.conf: No such file or directory\n",),
    "shell: exit code": (
        "Process 'worker' exited with code 137\n",
        "2026-01-02 03:04:05 ERROR Process 'worker' exited with code 137\n",
    ),
    "shell: other exit code": ("Process 'worker' exited with code 139\n",),
    "git: no repository": (
        "fatal: not a git repository (or any of the parent directories): .git\n",
        "+ git status\nfatal: not a git repository (or any of the parent directories): .git\n##[error]Process completed with exit code 128.\n",
    ),
    "pip: no distribution": (
        "ERROR: Could not find a version that satisfies the requirement torchx==9.9 (from versions: none)\nERROR: No matching distribution found for torchx==9.9\n",
        "Collecting requests\n  Using cached requests-2.31.0-py3-none-any.whl (62 kB)\nERROR: Could not find a version that satisfies the requirement torchx==9.1.2 (from versions: none)\nERROR: No matching distribution found for torchx==9.1.2\n",
    ),
    "pip: no other distribution": (
        "ERROR: Could not find a version that satisfies the requirement torchy==9.9 (from versions: none)\nERROR: No matching distribution found for torchy==9.9\n",
    ),
    "apt: package": (
        "Reading package lists...\nE: Unable to locate package libfoo2\n",
        "E: Unable to locate package libfoo2\n",
    ),
}

DOCKER: Final = {
    "docker: port": (
        "docker: Error response from daemon: driver failed programming external connectivity on endpoint web (3f2a1b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f1a): Bind for 0.0.0.0:8080 failed: port is already allocated.\n",
        "docker: Error response from daemon: driver failed programming external connectivity on endpoint web (aa11bb22cc33dd44ee55ff6677889900aa11bb22cc33dd44ee55ff6677889900): Bind for 0.0.0.0:9001 failed: port is already allocated.\n",
    ),
    "docker: name": (
        'docker: Error response from daemon: Conflict. The container name "/web" is already in use by container "3f2a1b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f1a".\n',
        'Error response from daemon: Conflict. The container name "/web" is already in use by container "00aa11bb22cc33dd44ee55ff6677889900aa11bb22cc33dd44ee55ff66778899".\n',
    ),
    "docker: copy": (
        '------\n > [4/7] COPY app/requirements.txt .:\n------\nERROR: failed to solve: failed to compute cache key: failed to calculate checksum of ref 3f2a1b9c-aaaa-bbbb-cccc-1234567890ab::q3m9x0ab7tz4k1w8c2n5v6: "/app/requirements.txt": not found\n',
        'ERROR: failed to solve: failed to compute cache key: failed to calculate checksum of ref 99887766-aaaa-bbbb-cccc-001122334455::t7x2ve0k9q4n1z8m3b6c5w: "/app/requirements.txt": not found\n',
    ),
    "docker: step": (
        '#9 [5/7] RUN pip install -r requirements.txt\n#9 1.234 ERROR: Could not find a version that satisfies the requirement nopkg2 (from versions: none)\n#9 1.250 ERROR: No matching distribution found for nopkg2\n#9 ERROR: process "/bin/sh -c pip install -r requirements.txt" did not complete successfully: exit code: 1\n------\nERROR: failed to solve: process "/bin/sh -c pip install -r requirements.txt" did not complete successfully: exit code: 1\n',
        '#11 7.001 ERROR: Could not find a version that satisfies the requirement nopkg2 (from versions: none)\n#11 7.002 ERROR: No matching distribution found for nopkg2\n#11 ERROR: process "/bin/sh -c pip install -r requirements.txt" did not complete successfully: exit code: 1\n',
    ),
    "docker: no daemon": (
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?\n",
        "Cannot connect to the Docker daemon at tcp://10.0.0.5:2375. Is the docker daemon running?\n",
    ),
    "docker: image": (
        "docker: Error response from daemon: pull access denied for acme/shop, repository does not exist or may require 'docker login'.\n",
        "Error response from daemon: pull access denied for acme/shop, repository does not exist or may require 'docker login'.\n",
    ),
}

HTTP: Final = {
    "curl: refused": (
        "curl: (7) Failed to connect to localhost port 8080 after 0 ms: Connection refused\n",
        "curl: (7) Failed to connect to 10.0.0.8 port 9123 after 21 ms: Connection refused\n",
    ),
    "curl: resolve": (
        "curl: (6) Could not resolve host: api.shop.example\n",
        "curl: (6) Could not resolve host: db2.internal\n",
    ),
    "curl: certificate": (
        "curl: (60) SSL certificate problem: self-signed certificate in certificate chain\n",
        "2026-01-02T03:04:05Z curl: (60) SSL certificate problem: self-signed certificate in certificate chain\n",
    ),
    "http: 404": (
        "requests.exceptions.HTTPError: 404 Client Error: Not Found for url: https://api.shop.io/v1/items/7\n",
        "requests.exceptions.HTTPError: 404 Client Error: Not Found for url: https://x.test/v2/items/99?a=b\n",
    ),
    "http: 403": (
        "requests.exceptions.HTTPError: 403 Client Error: Forbidden for url: https://api.shop.io/v1/items/7\n",
    ),
    "http: 503": (
        "upstream returned status code 503 in 1204ms\n",
        "upstream returned status code 503 in 1.2s\n",
    ),
    "http: 502": ("upstream returned status code 502 in 1204ms\n",),
    "nginx: upstream": (
        '2026/01/02 03:04:05 [error] 31#31: *77 connect() failed (111: Connection refused) while connecting to upstream, client: 10.0.0.1, server: shop.io, request: "GET /a HTTP/1.1"\n',
        '2025/11/12 13:14:15 [error] 7#7: *9 connect() failed (111: Connection refused) while connecting to upstream, client: 192.168.3.4, server: shop.dev, request: "GET /a HTTP/1.1"\n',
    ),
    "nginx: slow upstream": (
        '2026/01/02 03:04:05 [error] 31#31: *77 upstream timed out (110: Connection timed out) while reading response header from upstream, client: 10.0.0.1, server: shop.io, request: "GET /a HTTP/1.1"\n',
    ),
}

DATABASES: Final = {
    "postgres: table": (
        'psycopg2.errors.UndefinedTable: relation "users" does not exist\nLINE 1: SELECT * FROM users\n                      ^\n',
        'psycopg2.errors.UndefinedTable: relation "users" does not exist\nLINE 12:  FROM users WHERE id = 7\n               ^\n',
    ),
    "postgres: other table": (
        'psycopg2.errors.UndefinedTable: relation "orders" does not exist\n',
    ),
    "postgres: unique": (
        '2026-01-02 03:04:05.678 UTC [4321] ERROR:  duplicate key value violates unique constraint "users_email_key"\n2026-01-02 03:04:05.678 UTC [4321] DETAIL:  Key (email)=(ann@shop.io) already exists.\n',
        'ERROR:  duplicate key value violates unique constraint "users_email_key"\nDETAIL:  Key (email)=(bo@shop.io) already exists.\n',
    ),
    "postgres: other unique": (
        'ERROR:  duplicate key value violates unique constraint "users_pkey"\nDETAIL:  Key (id)=(7) already exists.\n',
    ),
    "postgres: password": (
        'psql: error: connection to server at "10.0.0.9", port 5432 failed: FATAL:  password authentication failed for user "ann"\n',
        'psql: error: connection to server at "db.shop.io" (10.2.3.4), port 5432 failed: FATAL:  password authentication failed for user "bo"\n',
    ),
    "sqlalchemy: unique": (
        "sqlalchemy.exc.IntegrityError: (sqlite3.IntegrityError) UNIQUE constraint failed: users.email\n[SQL: INSERT INTO users (email) VALUES (?)]\n[parameters: ('ann@shop.io',)]\n(Background on this error at: https://sqlalche.me/e/20/gkpj)\n",
        "sqlalchemy.exc.IntegrityError: (sqlite3.IntegrityError) UNIQUE constraint failed: users.email\n[SQL: INSERT INTO users (email, name) VALUES (?, ?)]\n[parameters: ('bo@shop.io', 'Bo')]\n(Background on this error at: https://sqlalche.me/e/14/gkpj)\n",
    ),
    "mysql: access": (
        "ERROR 1045 (28000): Access denied for user 'app'@'10.0.0.7' (using password: YES)\n",
        "ERROR 1045 (28000): Access denied for user 'app'@'localhost' (using password: YES)\n",
    ),
    "mysql: database": (
        "ERROR 1049 (42000): Unknown database 'shop2'\n",
        "2026-01-02 03:04:05 ERROR 1049 (42000): Unknown database 'shop2'\n",
    ),
    "mysql: duplicate": (
        "pymysql.err.IntegrityError: (1062, \"Duplicate entry 'ann@shop.io' for key 'users.email'\")\n",
        "pymysql.err.IntegrityError: (1062, \"Duplicate entry 'bo' for key 'users.email'\")\n",
    ),
    "mysql: other constraint": (
        "pymysql.err.IntegrityError: (1452, 'Cannot add or update a child row: a foreign key constraint fails')\n",
    ),
    "oracle: table": (
        "ORA-00942: table or view does not exist\n",
        "2026-01-02T03:04:05Z ERROR ORA-00942: table or view does not exist\n",
    ),
    "oracle: unique": ("ORA-00001: unique constraint (SHOP.USERS_PK) violated\n",),
    "redis: type": (
        "redis.exceptions.ResponseError: WRONGTYPE Operation against a key holding the wrong kind of value\n",
        "\x1b[31mredis.exceptions.ResponseError: WRONGTYPE Operation against a key holding the wrong kind of value\x1b[0m\n",
    ),
    "redis: password": ("redis.exceptions.AuthenticationError: NOAUTH Authentication required.\n",),
    "mongo: duplicate": (
        'MongoServerError: E11000 duplicate key error collection: shop.users index: email_1 dup key: { email: "ann@shop.io" }\n    at InsertOneOperation.execute (/app/node_modules/mongodb/lib/operations/insert.js:53:19)\n    at async addUser (/app/src/users.js:9:3) {\n  index: 0,\n  code: 11000\n}\n',
        'MongoServerError: E11000 duplicate key error collection: shop.users index: email_1 dup key: { email: "bo@shop.io" }\n    at InsertOneOperation.execute (/x/node_modules/mongodb/lib/operations/insert.js:51:9)\n    at async addUser (/x/src/users.js:90:31) {\n  index: 3,\n  code: 11000\n}\n',
    ),
    "sqlite: locked": (
        "sqlite3.OperationalError: database is locked\n",
        "[2026-01-02 03:04:05,678: ERROR/ForkPoolWorker-3] sqlite3.OperationalError: database is locked\n",
    ),
    "sqlite: table": ("sqlite3.OperationalError: no such table: users\n",),
    "jdbc: state": (
        "SQLSTATE[23000]: Integrity constraint violation: 1062 Duplicate entry 'ann@shop.io' for key 'users_email'\n",
        "SQLSTATE[23000]: Integrity constraint violation: 1062 Duplicate entry 'bo@shop.io' for key 'users_email'\n",
    ),
    "jdbc: other state": ("SQLSTATE[HY000] [2002] Connection refused\n",),
}

SERVICES: Final = {**SHELL, **DOCKER, **HTTP, **DATABASES}
