"""Words that names of parameters are made of, and what some names always mean."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from pathlib import Path
from typing import Final

__all__ = [
    "CALL_NAMES",
    "CONSENT",
    "GENERIC",
    "KNOWN",
    "LOOKALIKES",
    "METADATA",
    "NAMED_THINGS",
    "NOISE",
    "PAYLOADS",
    "PLACES",
    "SPOKEN_OF",
    "SYNONYMS",
    "TAKING_BACK",
    "UNITS",
    "normal",
    "same_tool",
    "singular",
    "tokens",
]

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")
_NAME_CHARS_MAX: Final = 128


# Letters of other alphabets that look like ours.
_LOOKS_LIKE: Final = str.maketrans("аеорсухіјѕνοα", "aeopcyxijsvoa")  # noqa: RUF001


def normal(name: str) -> str:
    """Return a name without case and separators: what all its styles share."""
    plain = unicodedata.normalize("NFKC", name[:_NAME_CHARS_MAX]).casefold()
    if not plain.isascii():
        plain = plain.translate(_LOOKS_LIKE)
    return "".join(char for char in plain if char.isalnum())


def same_tool(name: str, tool: str) -> bool:
    """Tell whether a call names a tool, with or without what models put before it."""
    plain = name.strip()
    for before in ("functions.", "tools.", "default_api.", "self."):
        plain = plain.removeprefix(before)
    return normal(plain) == normal(tool)


# Names repeat: those of schemas with every call, those of callers with every caller.
@lru_cache(maxsize=4096)
def tokens(name: str) -> tuple[str, ...]:
    """Return the words of a name, in lower case."""
    return tuple(word.casefold() for word in _WORD.findall(name[:_NAME_CHARS_MAX]))


def singular(word: str) -> str:
    """Return a word without its plural ending."""
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 2 and not word.endswith("ss"):  # noqa: PLR2004
            return word[: -len(ending)] + instead
    return word


# Names of an object around the arguments.
PAYLOADS: Final = frozenset(
    {
        "actioninput", "args", "argument", "arguments", "body", "data", "functionargs",
        "functionarguments", "functioncalls", "invoke",
        "functioncall", "function", "input", "inputs", "kwargs", "options", "param",
        "parameter", "parameters", "params", "payload", "properties", "request", "toolargs",
        "toolarguments", "toolcall", "toolcalls", "toolinput", "toolparams", "toolparameters",
        "toolrequest", "tooluse", "value", "values", "call",
    }
)  # fmt: skip

# What stands beside the arguments in a call.
CALL_NAMES: Final = frozenset(
    {
        "action", "function", "functionname", "id", "index", "jsonrpc", "method", "name", "object",
        "recipientname", "role", "tool", "toolcallid", "toolname", "toolsname", "type", "callid",
    }
)  # fmt: skip

# What models add about a call: no tool that has no such parameter could have meant it.
METADATA: Final = frozenset(
    {
        "apiversion", "callid", "chainofthought", "confidence", "correlationid", "explanation",
        "functionname", "innerthoughts", "internalreasoning", "invocationid", "justification",
        "meta", "modelname", "rationale", "reasoning", "requestid", "requesttimestamp",
        "schemaversion", "spanid", "stepid", "thinking", "thought", "thoughts", "thoughtprocess",
        "timestamp", "toolcallid", "toolname", "traceid", "typename", "uimetadata", "toolversion",
    }
)  # fmt: skip

# What such a name may be about, if the tool has a parameter for it.
_WHY: Final = frozenset({"reason", "why", "cause", "purpose", "justification", "motive", "ground"})
_MOMENT: Final = frozenset(
    "at created datetime moment occurred since time until updated when".split()
)
_DEGREE: Final = frozenset(
    "alpha certainty level likelihood percentile probability score significance threshold".split()
)
SPOKEN_OF: Final = {
    **dict.fromkeys(("explanation", "justification", "rationale", "reasoning", "thought"), _WHY),
    **dict.fromkeys(("timestamp", "requesttimestamp"), _MOMENT),
    "confidence": _DEGREE,
}

# A parameter of such a name is there to be agreed to.
CONSENT: Final = frozenset(
    """accept acknowledge acknowledged agree agreed approve approved certify confirm confirmation
    confirmed consent force understand understood""".split()
)

# What models write around JSON that says nothing about the task. No word that takes something back.
NOISE: Final = frozenset(
    """action and answer are args argument arguments as assistant body call called calling calls
    certainly code final following for function functioncall functioncalls functions go here i input
    inputs invoke is it json ll name object ok okay parameter parameters params payload python
    request s sure tag the these this to tool toolcall toolcalls tools use using will with you
    """.split()
)

# What takes back, or changes, what is said beside it.
TAKING_BACK: Final = frozenset(
    """avoid but cancel don dont except instead never no not rather stop unless without wrong
    """.split()
)

# They say too little to tell two names apart.
GENERIC: Final = frozenset({"id", "name", "api", "tool", "call", "request", "function", "model"})

# Parameters whose single values have commas in them.
PLACES: Final = frozenset(
    """address addresses airport airports area areas capital capitals city cities countries country
    county destination destinations district districts geography home hometown itinerary landmark
    landmarks locality location locations neighborhood neighbourhood origin origins place places
    province provinces region regions route routes state states stop stops street streets territory
    town towns venue venues village waypoint waypoints where zone""".split()
)
NAMED_THINGS: Final = frozenset(
    """actor actors album albums answer answers article articles artist artists attendee attendees
    author authors book books candidate candidates contact contacts customer customers employee
    employees guest guests member members participant participants parties party patient patients
    player players speaker speakers strings student students users citation citations
    comment comments company companies description descriptions director directors film films
    headline message messages movie movies names note notes paragraph paragraphs people person
    persons phrase phrases prompt prompts question questions quote quotes quotation reference
    references review reviews sentence sentences series show shows song songs story subject text
    texts title titles track tracks utterance utterances command commands expression expressions
    formula formulas greeting greetings instruction instructions line lines pattern patterns queries
    query regex script scripts sql statement statements""".split()
)

# Only offered: what one tool calls a city another calls a location.
SYNONYMS: Final = tuple(
    frozenset(group.split())
    for group in (
        "location city place town address destination where area",
        "query search q searchquery searchterm term keyword keywords text question prompt",
        "limit count max maxresults n num number size top topk k pagesize",
        "start begin from since origin startdate fromdate source",
        "end finish to until till enddate todate destination target",
        "name title label fullname",
        "id identifier uid key uuid",
        "file path filename filepath filelocation document",
        "directory folder dir",
        "message content body text msg contents",
        "recipient to receiver",
        "email mail emailaddress",
        "phone telephone phonenumber mobile",
        "url link uri href address",
        "type kind category sort class",
        "unit units measure",
        "language lang locale",
        "user username userid account login",
        "amount price cost value sum total",
        "date day when time datetime",
        "duration length period timespan",
        "quantity amount count number",
        "description summary details info",
        "company organization organisation firm business",
        "country nation",
        "movie film",
        "color colour",
        "order sort sortby orderby ordering",
        "format style",
        "mode method",
        "enabled active on enable",
    )
)

# Real words: a name made of them is no misspelling of another, however near it is.
KNOWN: Final = frozenset(
    """a abort about above absolute accept access account accounts accuracy act action actions
    active activity actor actors actual add added address adjust adult adults after age agent ages
    aim air alarm album alert algorithm alias all allow alpha alphabet alt alternative altitude
    amount an and angle animal annual answer any apartment api app append apply area arg args array
    arrival art article artist as asc aspect asset assets at attach attempt attempts audio auth
    author ate auto available average avg avoid axis
    back backup balance band bank bar base batch bath baths beam bed beds before begin below best
    beta bet bets bid big bill bin birth bit bits black block blocks blue board body bold bond book
    books bool boost bottom bound bounds box branch brand break bucket budget buffer build bus
    business button buy by byte bytes
    cache calc call caller calls camera cap capacity capital caption car card cards care cart case
    cases cash cast cat category cats cause cell cells center cents chain change channel chapter
    char charge charges chart charts chat check child children city claim class clean clear client
    clock close closed cloud club clue coach coast coat cod code codes coin col cold color colour
    column columns command comment commit common company compare complete conference config confirm
    const contact contain contains content contents context contract copy core corner cost costs
    count counter country county course court cover create credit criteria cross cube cup currency
    current curve custom customer cut cycle
    daily dark dash data database date dates day days dead deal dealer death debit debt debug decay
    deck deep default define degree delay delete delivery delta density deny depart departure depth
    desc describe description design desk destination detail details device dialect diameter diet
    diff digit digits dimension dir direct direction director dirt disable disabled discount dish
    disk display distance district dividend dock doctor document dog domain done door dose dot
    double down draft draw drink drive driver drop drug dry due duration during
    each earn earth east edge edit effect element elements else email emission enable enabled end
    ending energy engine enter entry env equal equity error estate event events every exact example
    excess exchange exclude exercise exist exit expand expense expire expiry export express extend
    extra eye
    face factor fail fair fall false family far fare farm fast fat fax feature features fee feed
    fees feet few field fields file files fill film filter final find fine fire first fish fit fix
    flag flags flat flight float floor flow focus follow food foot for force forecast form format
    forms formula forward found frame free freq frequency from front fuel full fun function fund
    future
    gain gains game games gap gas gate gender gene general genre get gift give global go goal goals
    gold good grade gram grand grant graph gravity green grid gross group groups grow growth guest
    guests guide
    half hand handle hard hash head header headers health heat heavy height hello help here hide
    high hint his history hit hits hold hole holiday home host hosts hot hotel hour hours house
    how human
    icon id idea ideal ids if image images import in inactive inch include income index indices
    info initial inner input insert inside instance int intensity intent interest interval into
    invalid invest invoice is issue it item items
    job jobs join joint jump just
    keep key keys kid kids kind know known
    label labels lake land lane language large last lat late latitude launch law lay layer layers
    layout lead league lean learn leave left leg legal length lens less lesson letter level levels
    library license life light like limit limits line lines link links list lists live load loan
    loans local location lock log logic login logs lon long longitude look loop loose lose loss lost
    lot love low lower luck lunch
    mac machine mail main major make male man map maps march mark market mask mass master match
    matches material math matrix max maximum may meal mean means measure media median medium meet
    meeting member members memo memory menu merge message messages meta meter method methods metric
    middle mile miles min minimum minor minute minutes miss mix mobile mod mode model models module
    mole mols moment money monitor month monthly months more mortgage most motion mount move movie
    much multiple muscle music must mute
    name names nation native near need net network never new news next night nights no node nodes
    noise none normal north not note notes notice now null num number numbers
    object of off offer office offset old on once one only open opening operation option options
    or order orders origin other out outcome outer output over own owner
    pace pack package pad page pages paid pain paint pair pan panel paper parallel param params
    parent parents park part parts party pass passed past patch path paths patient pattern pause pay
    payment peak people per percent percentage performance period permission person pet phase phone
    photo phrase pick piece pile pin pixel place places plan plane planet plant plate platform play
    player players plot point points policy poll pool port ports pose position post posts potential
    power prefix premium preset press pressure prev preview previous price prices prime print
    printer priority private prize probability process product products profile profit program
    project prompt proof property protein protocol public pull pulse purpose push put
    quality quantity quarter query queue quick quiet quote
    race radius rain random range rank ranks rate rates rating ratings ratio raw reach read reader
    real reason receive recent recipe record records red ref refer refund region regular relation
    release remote remove rename rent repeat repeats replace reply report request require reserve
    reset resource rest restart restore result results resume retries retry return returns revenue
    review reward rice rich ride right ring rise risk road rock role roles roll rolls room rooms
    root rotate round route row rows rule rules run running
    safe salary sale sales salt same sample samples save scale scan scene schedule schema school
    scope score scores screen script sea search season seat seats sec second seconds secret section
    sector seed seek select self sell send sender sent sequence series serve server service session
    set sets setting shape share shares sheet shift ship shipping shop short show shows side sides
    sign signal silent simple sine single site sites size sizes skill skills skin skip sleep slice
    slope slot slots slow small smart smooth snow social soft soil sold solid some song songs sort
    sound source sources south space span spatial speak special species specific speed spell spend
    split sport spot stable stack staff stage stamp standard star stars start starting starts stat
    state states station stats status stay step steps still stock stocks stop stops storage store
    stories story strain stream street strength stress strict string strip strong structure student
    style sub subject submit success suffix sugar suit suite sum summary sun supply support surface
    switch symbol sync system
    table tables tag tags tail take talk target task tasks taste tax taxes team teams tech temp
    temperature temple template tense term terms test tests text than that the theme then there
    thermal thick thin thing this thread threshold through throw ticket tickets tide tie tier tile
    till time timeout times timezone tint tip tire title to today token tokens tone tool tools top
    topic topics total touch tour toward town toy trace track tracks trade traffic train transfer
    transit travel treat tree trees trend trial trials trigger trim trip trips truck true trunk
    trust try turn twice two type types
    unable under undo unique unit units unity until up update upper uri url urls us usage use used
    user users
    vacation valid value values variable variant vector vehicle vendor venue verb verbose version
    vertical video view views visit visual voice void volume vote
    wait walk wall want war warm warn wash waste watch water wave waves way weak weather web week
    weekly weeks weight weights well west wet what wheel when where which while white who whole why
    wide width wife wild will win wind window windows wine wing winner wins winter wire wish with
    within without wood word words work worker world write
    x y yard year yearly years yes yet yield young your z zero zip zone zoom
    absence presence ascending descending inbound outbound import export encode decode encrypt
    decrypt increment decrement increase decrease internal external horizontal prefix postfix
    subtract divide multiply divisor dividend numerator denominator sender recipient buyer seller
    lender borrower husband wife male female mother father brother sister son daughter
    celsius kelvin gram kilogram litre liter metre meter hectare acre
    colon comma semicolon slash principal principle precision recall affect effect device devise
    reference preference trait die dice prob payout metal meat brain maker tempo lang dict ace cook
    mission mol ago var dev empire locale bot hall has had ssid acc pod holder pend heading ssl
    leading archive fact facts ticker src slip gpu cpu crypto tls cve cwe cpe dest purl flip star
    publish geo idp rrule scaler guess hearing firm shade capo pre oven cert len lng cool pub
    contrast codec built identify identifier crm csm fan faq prod sql shard crypt factory idx argv
    inst folder writer docket ticket pocket bracket racket rocket socket
    bake ball bare bath bay bean bear beat been beer bell belt bend bike bird bite blow boat bone
    boot born boss both bowl bread brick bring broad brown brush burn bush busy cable cake calm camp
    cane cape carry catch chair chance cheap cheese chef chest chip choice chose church circle civil
    clay clerk cliff climb cloth coal corn cotton crash crew crime crop crowd crown cry dance danger
    dare dawn dear debate deer deny dine dive dome drag dream dress drift drill duck dust duty eager
    early ease easy eat echo egg elder elect empty enemy enjoy equip era essay evil exam faith fame
    fancy fault favor fear fellow fence fever fiber fight finger finish flash fleet flesh flood
    flour flower fly foil fold folk fool forest fork fort frost fruit gang gear ghost giant girl
    glad glass glory glove goat grab grace grain grape grass grave great grip guard guilt guitar gun
    habit hair hall ham harm hat hate hawk hay heap hear heart heaven hedge heel hell hen hero hill
    hip hire hobby hook hope horn horse huge hunt hurry hurt ice inn iron island ivory jail jam jar
    jaw jazz jet jewel joke joy judge juice jury keen kick kill king kiss kit kitchen knee knife
    knock lab lack lady lamb lamp lap laser laugh lawn lawyer lazy leaf league leak leather lend lid
    lie lift limb lion lip liquid liver lobby logo lord loud lump lung lyric magic maid maple marble
    marry mate mayor meadow medal melody melt mercy merit mess mild milk mill mind mine mint mirror
    mist mood moon moral mother motor mouse mouth mud mug myth nail navy neck nerve nest nice noon
    nose novel nurse nut oak oath ocean odd oil onion opera oral orbit organ ought ounce oxygen pale
    palm panic park paste pause peace pear pearl pen pepper piano pig pilot pink pint pipe pit pizza
    plain plug poem poet pole polite pond poor pop pork pot pound pour pray pride priest prince
    prison proud pump punch pure queen quit rabbit rack radar radio rail rare raw ray rear rebel
    relax rely reef rifle rival river robe robot roof rope rose rough royal rub rude ruin rural rush
    sack sad sail salad sand sauce saw say scar scare sea seal seem shade shake shame sharp shed
    shell shelf shine shirt shock shoe shoot shore shot shout shower shut sick sigh silk silver sing
    sink sir sister sit ski skirt sky slave slide slight smell smile smoke snake soap sock sofa soon
    sorry soul soup sour spare spark spice spin spite spoon spray spread spring spy square squad
    steak steal steam steel steep stem stick stiff stir stomach stone storm straw stupid sugar sweet
    swim sword tackle tale tall tank tap tape tea tear tell tend tent thank theft thief thirst
    thought thumb tidy tight timber tiny tired tissue toe toilet tomato tongue tooth torch tough
    towel tower trail trap tray treaty tribe trick troop trophy tube tunnel twin ugly uncle upset
    urban urge vague valley van vast veil vein vest vice victim violin virtue visa vivid wage wagon
    wake wander ward warn weapon wear weave wedding weed weigh weird whip wicked widow wing wipe
    wise witness wolf woman wonder wool worm worry worst worth wound wrap wrist wrong yell yellow
    zebra abroad active actual admit adopt advice affair afford agree alive allow alone along aloud
    apart appeal appear apple april arise arm army arrest arrive arrow aside asleep assist assume
    august aunt award aware away awful
    stationary stationery compliment complement council counsel""".split()
)

# Common words that are one slip away from another word: `statue` is no misspelling of `statute`.
# Drawn from the vocabulary of the embedder in `search/model`.
LOOKALIKES: Final = frozenset(
    Path(__file__).with_name("lookalikes.txt").read_text(encoding="utf-8").split()
)

# Units as names have them: `timeout_s` is no misspelling of `timeout_ms`.
UNITS: Final = frozenset(
    """s ms us ns m min mins h hr hrs d mm cm dm km mi ft yd nm um g kg mg ug mcg lb lbs oz t l ml
    cl dl gal c f k hz khz mhz ghz w kw mw gw wh kwh v kv mv a ma pa hpa kpa mpa psi bar n kn j kj
    cal kcal deg rad b kb mb gb tb kib mib gib px pt em pct bps kph kmh mph ha mol mmol usd eur gbp
    aud cad nzd hkd sgd jpy cny chf""".split()
)
