"""Which texts are in another language, and what they are about."""

import pytest

from stratagem.search.analysis import query_terms
from stratagem.search.function_words import is_foreign

FOREIGN = {
    "German": "Wann wird die Heizung in der Werkstatt gewartet?",
    "Spanish": "¿Dónde está la llave del taller?",
    "French": "Qui a les papiers de la camionnette ?",
    "Italian": "Di chi è la bicicletta rossa?",
    "Portuguese": "Qual é o prazo do relatório?",
    "Dutch": "Hoeveel kost het onderhoud van de lift?",
    "Swedish": "Vem har nyckeln och vad kostar den?",
}
ENGLISH = [
    "When does the bus from El Paso arrive?",
    "How do I install pip packages on mac os?",
    "sudo su",
    "du -h /var",
    "SELECT * FROM la WHERE id = 3",
    "var x = 5",
    "ten days per van",
    "Who wrote to Charles de Gaulle and La Paz?",
    "TypeError in getUserName()",
    "the email of Piet van der Berg",
    "Van der Berg",
    "Ursula von der Leyen",
    "Oscar de la Renta",
    "Who met Maria de Souza?",
    "Las Vegas to Los Angeles",
    "las vegas to los angeles",
    "Guillermo del Toro and El Niño, La Niña",
    "MIT license, de facto standard per RFC 7231",
    "Kim et al. de novo assembly",
    "supported locales: en, de, es",
    "jest mock of es modules",
    "python del var",
    "comment out var",
    "packages that come per van",
    "AWS SES va region",
    "locales en de fr es",
    "translate it to en de es pl",
    "São Paulo flights in May",
    "résumé de Anna",
    "jalapeño recipe",
    "Zoë Kim birthday",
    "what’s the café wifi?",
    "WER benchmark of larger models?",
    "yang wei phone?",
    "men at work",
    "KDE Plasma on Mac OS",
    "kde on a Müller laptop?",
    "noe valley rent?",
    "",
]


@pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN)
def test_a_text_is_in_another_language_by_its_function_words(text: str) -> None:
    assert is_foreign(text)
    assert is_foreign(text.upper())


@pytest.mark.parametrize(
    "text",
    [
        "är mjölken slut?",
        "kdo vyhrál volby?",
        "czy piekarnik jest włączony?",
        "hvor kjøpte vi sofaen",
        "waarom regent het?",
        "onko uuni päällä?",
        "berapa umur bos?",
    ],
)
def test_a_single_function_word_shows_the_language_of_a_question_or_beside_an_accent(
    text: str,
) -> None:
    assert is_foreign(text)


@pytest.mark.parametrize("text", ENGLISH)
def test_names_and_code_do_not_make_a_text_foreign(text: str) -> None:
    assert not is_foreign(text)


@pytest.mark.parametrize(
    "text",
    [
        "cumpleaños de la abuela",
        "La contraseña de la WiFi",
        "Wie heißt der Hund von Anna?",
        "Où est la Tour Eiffel ?",
        "dirección de la Universidad",
    ],
)
def test_names_in_a_text_in_another_language_do_not_make_it_english(text: str) -> None:
    assert is_foreign(text)


def test_a_query_asks_for_no_function_words_of_its_language() -> None:
    assert query_terms("¿Cuál es el número de la caja?") == query_terms("número caja")
    assert query_terms("welche Farbe hat das Tor?") == query_terms("Farbe Tor")


def test_a_list_of_languages_asks_for_each_of_them() -> None:
    assert query_terms("locales en de fr es") == ["local", "en", "de", "fr", "es"]


def test_a_query_of_function_words_alone_asks_for_them() -> None:
    assert query_terms("qui es-tu") == query_terms("qui") + query_terms("es-tu")
    assert query_terms("de la") == ["de", "la"]


def test_a_function_word_of_another_language_is_asked_for_in_english() -> None:
    assert query_terms("the streets of la paz") == ["street", "la", "paz"]
