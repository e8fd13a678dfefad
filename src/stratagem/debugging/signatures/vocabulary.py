"""Words and phrases that the rules know: names whose digits mean something, and contexts.

All of it is data. A context says how the words after it are to be read: as a name that is part
of what went wrong, as a code that says what went wrong, or as a value that happened to be there.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "CODES",
    "CODE_HOSTS",
    "ERRNOS",
    "HOSTED",
    "NAMED",
    "NO_PACKAGES",
    "PATH_WORDS",
    "PORTS",
    "REFERRED",
    "REGISTRIES",
    "REGISTRY_HOSTS",
    "TECHNICAL",
    "TOP_LEVEL_DOMAINS",
    "TOP_LEVEL_DOMAINS_SURE",
    "VALUED",
]

# Names whose digits tell them apart from others of their kind: `int32` is not `int64`.
TECHNICAL: Final = (
    r"u?int(?:8|16|32|64|128)(?:_t)?",
    r"[iu](?:8|16|32|64|128)",
    r"b?float(?:8|16|32|64|128)?(?:_e\dm\d)?",
    r"[bf]p?(?:16|32|64)",
    r"(?:complex|decimal|fixed|varchar|timestamp)(?:32|64|128|256)",
    r"(?:utf|ucs)[-_]?(?:7|8|16|32)(?:[-_]?[lb]e)?(?:mb[34](?:_\w{1,40})?)?",
    r"(?:iso[-_]?)?8859[-_]\d{1,2}",
    r"(?:cp|windows[-_])(?:437|850|932|936|949|950|125\d)",
    r"latin[-_]?\d",
    r"(?:sha|shake)[-_]?(?:1|2|3|128|224|256|384|512)",
    r"(?:md[245]|base(?:16|32|36|58|62|64|85)|crc(?:16|32|64)|ed25519|x25519|aes[-_]?(?:128|192|256))",
    r"(?:x86(?:[-_]64)?|x64|amd64|i[3456]86|arm(?:64|v[678]\w?)?|aarch64|ppc64(?:le)?|s390x|win(?:32|64))",
    r"(?:wasm|riscv)(?:32|64)",
    r"(?:http[23]?|ipv[46]|oauth[12]|tls(?:v?1(?:\.[0-3])?)?|ssl(?:v?[23])?|socks[45]|s3|ec2|k8s|k3s)",
    r"(?:i18n|l10n|a11y|h26[45]|mp[34]|web[23]|es[56]|es20[12]\d|h2|p2p|b2b|r2|d3|gb18030)",
    r"(?:python|py|ruby|php|perl|lua|pip|node|java|jdk|qt|gtk)[23]",
    r"(?:log4j2?|slf4j|neo4j|sqlite3|psycopg[23]?|boto3?|urllib[23]|bs4|pg8000|x509|libc6|glib2)",
    r"GLIBC(?:XX)?_\d{1,2}(?:\.\d{1,3}){1,2}",
    r"(?:conv|pool|batchnorm|linear)[123]d",
)

# Errors of system calls and of npm by their names, in lower case.
ERRNOS: Final = (
    "e2big|eacces|eaddrinuse|eaddrnotavail|eafnosupport|eagain|ealready|ebadengine|ebadf",
    "ebadmsg|ebadplatform|ebusy|ecanceled|echild|econnaborted|econnrefused|econnreset",
    "edeadlk|edestaddrreq|edquot|eexist|efault|efbig|ehostdown|ehostunreach|eidrm|eilseq",
    "einprogress|eintegrity|eintr|einval|eio|eisconn|eisdir|ejsonparse|elifecycle|eloop",
    "emfile|emlink|emsgsize|enametoolong|enetdown|enetreset|enetunreach|enfile|enobufs",
    "enodata|enodev|enoent|enoexec|enolck|enolock|enomem|enomsg|enoprotoopt|enospc|enosys",
    "enotblk|enotconn|enotdir|enotempty|enotfound|enotsock|enotsup|enotty|enxio",
    "eopnotsupp|eoverflow|eowner|eperm|epipe|eproto|eprotonosupport|eprototype|erange",
    "eresolve|erofs|eshutdown|espipe|esrch|estale|etarget|etime|etimedout|etoomanyrefs",
    "etxtbsy|eusage|ewouldblock|exdev",
)

_SOFTWARE: Final = (
    r"(?:packages?|modules?|crates?|gems?|pods?|charts?|repo|repository|images?|formula|plugins?|extensions?"
    r"|providers?|actions?|targets?|librar(?:y|ies)|toolchains?|components?|programs?|executables?)"
)
# What stands after these is the name of a module, package, class, symbol or program.
NAMED: Final = (
    r"No module named:?",
    (
        r"(?:Cannot|Can't|Could not|Couldn't|could not|cannot) (?:find|resolve|locate|load)"
        r" (?:the )?(?:module|package|library|class|main class|crate|extension|plugin|type|symbol)"
        r"(?: or load main class)?(?: named)?:?"
    ),
    r"Can't resolve",
    r"can't find crate for",
    r"unresolved (?:import|external symbol|module)",
    r"use of (?:undeclared|unresolved)(?: \w{1,20}){0,4}",
    r"no required module provides package",
    r"package (?=\S{1,200} is not in)",
    r"package (?=\S{1,200} does not exist)",
    r"(?:module|package) not found:?",
    r"cannot import name",
    r"(?:ClassNotFoundException|NoClassDefFoundError):",
    r"undefined (?:reference to|symbol:?)",
    r"undefined:",
    r"multiple definition of",
    # The option is a part of the name, as it is a part of the word.
    r"(?:library not found for|cannot find|unable to find library)(?= -l)",
    r"No matching distribution found for",
    r"that satisfies the requirement",
    r"(?:not available from current channels|ResolvePackageNotFound):(?: -)?",
    r"Unable to locate package",
    r"(?:Unable to find a match|No match for argument):",
    r"No package(?= '?[\w.+-]{1,80}'? (?:found|available))",
    r"command not found:",
    r"(?:is not|isn't) in the npm registry",
    r"No such built-in module:",
    r"Unknown (?:database|system variable|storage engine)",
    r"[Nn]o such module:?",
    r"Plugin (?:with id|not found:?)",
    r"fatal error:(?= \S{1,200}: No such file)",
    # Ruby
    r"cannot load such file --",
    r"Could not find gem",
    r"Could not find(?= [\w.<>-]{1,100} in (?:any|locally|rubygems|the))",
    # Rust
    r"no matching package named",
    r"no matching package(?= '[\w-]{1,100}' found)",
    r"failed to select a version for(?: the requirement)?",
    # Java
    r"Could not (?:find|resolve)(?: artifact)?(?= [\w.-]{1,100}:[\w.-]{1,100}[:. ])",
    # PHP
    r"(?:Class|Interface|Trait)(?= '[\w\\]{1,200}' not found)",
    r"Call to undefined function",
    r"Could not find a (?:matching )?version of package",
    # .NET
    r"Could not load file or assembly",
    r"type or namespace name",
    r"Unable to find package",
    # Software of any kind that is not there: `target not found: gdb`, `repo bitnami not found`
    rf"{_SOFTWARE} (?:is |was )?not found:",
    rf"[Uu]nknown {_SOFTWARE}:",
    rf"[Nn]o {_SOFTWARE} (?:named|called|with (?:the )?(?:name|id))",
    (
        rf"{_SOFTWARE}(?= (?!(?:which|that|it|was|is|has|and|or|the|name|manager|file|version)\b)"
        r"'?[\w.@/+-]{1,100}'? (?:(?:was|is) )?not (?:found|available|installed))"
    ),
    rf"(?:compatible versions for|no available version of) {_SOFTWARE}",
    r"requires(?= [\w./-]{1,100} \*)",
    r"(?:conflict|downgrade) detected for",
    r"(?:[Bb]uilding wheel|build wheels?|[Bb]uild dependencies) for",
    # Kotlin, OCaml
    r"lateinit property",
    r"Unbound (?:module|value|constructor|type constructor|record field)",
    # Perl, R, Elixir, Dart, Lua, Julia, images
    r"No package with name",
    r"No results matching query were found(?: for Lua (?:\d{1,2}\.\d{1,2}|<n>))?:",
    r"pull access denied for",
    r"Can't locate(?= \S{1,200}\.pm in)",
    r"there is no package called",
    r"module(?= [\w.]{1,200} is not available)",
    r"Target of URI doesn't exist:",
    r"module(?= '[\w.]{1,100}' not found)",
    r"Package(?= [\w.]{1,100} not found in current path)",
)

# What a version may stand behind and is no package.
NO_PACKAGES: Final = (
    r"[Vv]er(?:sion)?s?|[Rr]eleases?|[Rr]evisions?|[Bb]uilds?|[Tt]ags?|[Cc]ommits?",
    r"than|from|to|at|is|was|are|in|of|and|or|by|on|with|for|only|not|got|has|have|since|until|up",
    r"[Ff]ound|[Ee]xpected|[Aa]ctual|[Cc]urrent|[Ll]atest|[Ii]nstalled|[Uu]sing|[Nn]eeds?|[Rr]equire[ds]?",
    r"[Ll]ine|[Cc]olumn|[Pp]orts?|[Ee]rror|[Cc]ode|[Ss]tatus|[Ee]xit|[Ss]ize|[Cc]ount|[Ii]ndex|[Ii][Pp]|[Hh]ost",
    r"install|add|update|upgrade|run|[Tt]imeout|[Ss]ection|RFC|HTTPS?|https?|[Ss]erver|[Aa]ddress",
)
# Where packages are looked for.
REGISTRIES: Final = (
    r"registr(?:y|ies)|repositor(?:y|ies)|index(?:es)?|channels?|remotes?|sources?",
)
# By a part of its host an address is known to lead to packages or code.
REGISTRY_HOSTS: Final = (
    r"npm(?:js)?|yarnpkg|pypi|pythonhosted|crates|rubygems|gems?|maven|gradle|nexus|artifactory|jfrog",
    r"packagist|nuget|docker|quay|ghcr|gcr|ecr|registry|repos?|repository|packages?|pkgs?|charts?|helm",
    r"mirrors?|proxy|goproxy|index|archives?|ports|dl|cdn|files|static|downloads?|deb|rpm|apt|conda",
    r"anaconda|cran|cpan|hex|pub|hackage|opam|luarocks|cocoapods|github|gitlab|bitbucket|git|huggingface",
    r"hub|plugins|alpinelinux|ubuntu|debian|fedoraproject",
)
# Words of an address of a registry or a server that name no package and no resource.
PATH_WORDS: Final = frozenset(
    {
        *("api", "rest", "rpc", "graphql", "public", "private", "simple", "simple-index"),
        *("index", "json", "xml", "html", "package", "packages", "pkg", "pkgs", "crates", "gems"),
        *("chart", "charts", "release", "releases", "download", "downloads", "archive"),
        *("archives", "dist", "dists", "pool", "main", "master", "head", "latest", "stable"),
        *("universe", "contrib", "repo", "repos", "repository", "repositories", "registry"),
        *("maven", "maven2", "m2", "npm", "pypi", "nuget", "p2", "flatcontainer", "manifests"),
        *("blobs", "tags", "library", "models", "datasets", "resolve", "raw", "blob", "tree"),
        *("info", "mod", "zip", "file", "files", "static", "content", "contents", "artifacts"),
        *("artifactory", "group", "project", "projects", "user", "users", "org", "orgs"),
        *("config", "metadata", "upload", "uploads"),
    }
)
# What refers to a page about an error.
REFERRED: Final = (
    r"[Ss]ee|[Vv]isit|[Rr]ead|[Rr]efer to|[Dd]ocs?|[Dd]ocumentation|[Dd]etails",
    r"[Hh]elp|[Mm]ore info(?:rmation)?|[Ii]nformation|[Bb]ackground|[Rr]eport",
    r"[Ll]earn more|[Gg]uide",
)

# What an HTTP server says after the number.
_REASONS: Final = (
    r"(?:Bad|Unauthorized|Payment|Forbidden|Not|Method|Proxy|Request|Conflict|Gone|Length"
    r"|Precondition|Payload|URI|Unsupported|Range|Unprocessable|Locked|Failed|Too|Upgrade"
    r"|Internal|Service|Gateway|Client|Server|Loop|Insufficient)\b"
)
_HTTP: Final = r"\bHTTP(?:/\d(?:\.\d)?)?[ \":-]{1,3}"
_ERROR_CODE: Final = r"\b[Ee]rr(?:or)?[ _-]?(?:[Cc]ode|[Nn]umber|[Nn]o)\b[ :=#]{0,3}[(']?"
_ENDED: Final = r"\b(?:exit(?:ed|s)?|return(?:ed|s)?|terminated|failed)\b"

# Codes: numbers that say what went wrong. They stay as they are.
CODES: Final = (
    r"\[?\b(?:Errno|errno|WinError|winerror|os error|NTSTATUS)\b[ :=]{0,2}-?\d{1,10}\]?",
    # HTTP
    _HTTP + r"(?:(?:[Ee]rror|[Ss]tatus|[Cc]ode|[Rr]esponse)[ :]{1,2}){0,2}[1-5]\d\d(?!\d)",
    r"\b[Ss]tatus(?:[ _]?[Cc]ode)?\b'?(?: of| is| was)?[ :=]{0,3}\(?[1-5]\d\d(?!\d)",
    rf"(?<![\w.])[45]\d\d(?=:? {_REASONS})",
    r"\bcurl: \(\d{1,3}\)",
    r"\(\d{1,3}: (?=[A-Z])",
    r"(?<![\w-])-32[67]\d\d(?!\d)",
    # Processes
    _ENDED + r"(?: [a-z-]{1,12}){0,4} (?:code|status|value)\b[ :=]{0,3}\(?-?\d{1,10}",
    r"\bexit (?:code|status)\b[ :=]{0,3}\(?-?\d{1,10}",
    r"\bexit(?:ed)? (?:with )?\(?-?\d{1,3}(?!\d)",
    r"\breturned \d{1,3} exit status",
    r"\bExited \(\d{1,3}\)",
    r"\b(?:(?:on|by|with|received) )?signal:? \d{1,2}(?!\d)",
    # Databases
    r"\bSQL ?STATE\b[ \[(:='\"]{0,3}[0-9A-Z]{5}\b\]?(?: \[\d{1,5}\])?",
    r"\b[Ss]ql[Cc]ode\b[ =:]{1,2}-?\d{1,6}",
    r"\b(?:ERROR|Error|error) \d{1,5}(?: \([0-9A-Z]{5}\))?(?![\w.])",
    r"(?:^|(?<=: )|(?<=\())\(\d{3,5}, (?=')",
    r"(?:^|(?<=: ))E\d{4,5}(?= )",
    # Everybody
    _ERROR_CODE + r"-?(?:0x[0-9A-Fa-f]{1,8}|[0-9A-Z]{1,6})\b",
    r"\b[Cc]ode\b'?[ :=]{1,3}'?(?:-?\d{1,4}|(?=[0-9A-Z]{0,4}\d)[0-9A-Z]{5})\b(?![.\w])",
    r"\b[A-Z]{2,20}(?:_[A-Z]{2,20}){1,6}_[1-5]\d\d(?!\d)",
    r"\bHRESULT\b[ :=(]{0,3}0x[0-9A-Fa-f]{8}",
    r"\b0x(?:8007|C000)[0-9A-Fa-f]{4}\b",
    r"(?:^|(?<=error )|(?<=Error )|(?<=[\[(])|(?<=: ))[A-Z]{1,8}-?\d{3,6}[A-Z]?(?=[:\]])",
    r"\berror:[0-9A-F]{8}(?=:)",
)

# What stands in quotes after these was put in by somebody; it says nothing about the cause.
VALUED: Final = (
    r"invalid literal for (?:int|float|Decimal)\(\) with base \d{1,2}:",
    r"could not convert string to (?:float|int|complex):",
    r"[Dd]uplicate entry",
    r"invalid input (?:syntax|value) for (?:type |enum )?[\w ]{1,40}:",
    r"[Ii]ncorrect [\w ]{1,40} value:",
    r"For input string:",
    r"parsing",
    r"[Ii]nvalid (?:value|date|number|timestamp|email|uuid|argument value|isoformat string):?",
    r"does not match format",
    r"time data",
    r"(?:for|by) user",
    r"server (?:at|on)",
)

# What stands after these is the name of a host.
HOSTED: Final = (
    r"(?:resolve|unknown|find|reach|translate) host(?: ?name)?:?",
    r"UnknownHostException:",
    r"ENOTFOUND",
    r"EAI_AGAIN",
    r"lookup(?= \S{1,253} on |(?= \S{1,253}: no such host))",
    r"Name or service not known:",
    r"server:(?= [\w.-]{1,253}, request:)",
)

# Code lives under these: what follows them is the name of a package.
CODE_HOSTS: Final = (
    r"github\.com",
    r"gitlab\.com",
    r"bitbucket\.org",
    r"golang\.org",
    r"google\.golang\.org",
    r"gopkg\.in",
    r"go\.uber\.org",
    r"k8s\.io",
    r"sigs\.k8s\.io",
)

# A name of two parts is a host only with these; `model.net` and `logger.info` are code.
TOP_LEVEL_DOMAINS_SURE: Final = ("com", "org", "edu", "gov", "local", "internal", "localdomain")
TOP_LEVEL_DOMAINS: Final = (
    *TOP_LEVEL_DOMAINS_SURE,
    *(
        "net",
        "io",
        "dev",
        "cloud",
        "ai",
        "co",
        "uk",
        "de",
        "fr",
        "jp",
        "cn",
        "ru",
        "us",
        "eu",
        "info",
    ),
    *("lan", "corp", "home", "test", "example", "svc", "app", "tech", "in", "br", "nl", "ch", "se"),
    *("au", "ca", "it", "es", "pl", "xyz", "online", "site", "mil", "int", "biz", "invalid"),
)

# A well-known port names the service that did not answer; any other is a value.
PORTS: Final = frozenset(
    {
        *(22, 25, 53, 389, 1433, 1521, 2181, 2375, 2376, 2379, 3306, 5432, 5672, 6379, 6443),
        *(9042, 9092, 9200, 11211, 27017),
    }
)
