"""Names that are known: places and organizations, with those of Faker's lists where installed."""

from __future__ import annotations

from functools import cache
from typing import Final

__all__ = ["first_names", "organizations", "places"]

_PLACES: Final = """
Amsterdam,Ankara,Athens,Atlanta,Auckland,Baghdad,Bangalore,Bangkok,Barcelona,Beijing,Beirut,Belgrade,
Berlin,Bogota,Boston,Brasilia,Bratislava,Brussels,Bucharest,Budapest,Buenos Aires,Cairo,Calcutta,
Cape Town,Caracas,Casablanca,Chicago,Cologne,Copenhagen,Dallas,Damascus,Delhi,Denver,Detroit,Dhaka,
Dubai,Dublin,Edinburgh,Frankfurt,Geneva,Glasgow,Hamburg,Hanoi,Havana,Helsinki,Hong Kong,Houston,
Istanbul,Jakarta,Jerusalem,Johannesburg,Kabul,Karachi,Kiev,Kyiv,Kyoto,Lagos,Las Vegas,Lima,Lisbon,
Ljubljana,London,Los Angeles,Luxembourg,Lyon,Madrid,Manchester,Manila,Marseille,Melbourne,Mexico City,
Miami,Milan,Minsk,Montreal,Moscow,Mumbai,Munich,Nairobi,Naples,New Delhi,New York,New York City,Osaka,
Oslo,Ottawa,Oxford,Paris,Philadelphia,Phoenix,Prague,Reykjavik,Riga,Rio de Janeiro,Rome,Rotterdam,
Saint Petersburg,San Diego,San Francisco,San Jose,Santiago,Sao Paulo,São Paulo,Seattle,Seoul,Shanghai,
Shenzhen,Singapore,Sofia,Stockholm,Stuttgart,Sydney,Taipei,Tallinn,Tehran,Tel Aviv,Tokyo,Toronto,
Tunis,Turin,Valencia,Vancouver,Venice,Vienna,Vilnius,Warsaw,Washington,Wellington,Zagreb,Zurich,Zürich,
Africa,Asia,Europe,America,North America,South America,Antarctica,Australia,England,Scotland,Wales,
Northern Ireland,Russia,South Korea,North Korea,Vietnam,Iran,Syria,Taiwan,Bolivia,Venezuela,Tanzania,
Czech Republic,Bavaria,Catalonia,Ontario,Quebec,USA,UK,United States,United Kingdom
"""
_ORGANIZATIONS: Final = """
Adobe,Airbus,Alibaba,Alphabet,Amazon,Amazon Web Services,AMD,Anthropic,Apple,Associated Press,BBC,BMW,
Boeing,Bosch,CERN,CIA,Cisco,CNN,DeepMind,Dell,eBay,ECB,European Central Bank,European Commission,
European Parliament,European Union,EU,Facebook,FBI,Federal Reserve,Ford,GitHub,GitLab,Google,Greenpeace,
Harvard,Honda,HSBC,Huawei,Hugging Face,IBM,IMF,Intel,Interpol,JPMorgan,Kubernetes Foundation,LinkedIn,
Linux Foundation,Meta,Microsoft,MIT,Mozilla,NASA,NATO,Netflix,Nintendo,Nokia,NSA,NVIDIA,Nvidia,OECD,
OpenAI,Oracle,PayPal,Philips,Qualcomm,Red Cross,Red Hat,Reuters,Salesforce,Samsung,SAP,Siemens,Sony,
SpaceX,Spotify,Stanford,Stripe,Tencent,Tesla,Toyota,Twitter,Uber,UN,UNESCO,UNICEF,United Nations,
Volkswagen,Walmart,Wikimedia,Wikipedia,WHO,World Bank,World Health Organization,WTO,YouTube
"""


def _names(text: str) -> frozenset[str]:
    return frozenset(name for line in text.split("\n") for name in line.split(",") if name)


@cache
def places() -> frozenset[str]:
    """Return the names of cities, countries and states."""
    from faker.providers.address.en import Provider as Countries
    from faker.providers.address.en_US import Provider as States

    return _names(_PLACES) | frozenset(Countries.countries) | frozenset(States.states)


@cache
def organizations() -> frozenset[str]:
    """Return the names of well-known organizations."""
    return _names(_ORGANIZATIONS)


@cache
def first_names() -> frozenset[str]:
    """Return the names that people are given in English-speaking countries and some others."""
    from faker.providers.person.de_DE import Provider as German
    from faker.providers.person.en_US import Provider as American
    from faker.providers.person.es_ES import Provider as Spanish
    from faker.providers.person.fr_FR import Provider as French

    known: set[str] = set()
    for each in (American, German, French, Spanish):
        known |= set(each.first_names)
    # What is far more often another word at the beginning of a sentence.
    return frozenset(known) - _WORDS | _MORE


_WORDS: Final = frozenset(
    "Will May April June August Art Drew Mark Grant Chase Rich Guy Jean Bill Sunny Rose Grace Joy Hope "
    "Faith Dawn Summer Autumn Page Ray Dean Miles Max Van Angel".split()
) - {"Grace", "Mark", "Bill", "Jean", "Rose", "Ray", "Dean", "Max", "Drew"}
_MORE: Final = frozenset(
    "Ada Alan Aisha Ahmed Ali Anna Carlos Chen Dmitri Elena Fatima Giulia Gottfried Hans Hiroshi Igor "
    "Ivan Jana Juan Kenji Lars Li Linus Mei Mohammed Muhammad Nikola Olga Omar Pedro Priya Raj Rosa "
    "Sanjay Sven Svetlana Tim Wei Yuki Yusuf Zoe".split()
)
