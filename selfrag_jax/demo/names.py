"""Names the sources spell badly or not at all, and the small rules of English that the templates need."""

import re
import unicodedata


def words(text: str) -> list[str]:
    """The words of a list written in one string."""
    return text.split()


# Better or more usual names than the ones the sources carry.
COUNTRY_NAMES = {
    "AX": "Åland",
    "BL": "Saint Barthélemy",
    "BS": "Bahamas",
    "CD": "Democratic Republic of the Congo",
    "CG": "Republic of the Congo",
    "CI": "Ivory Coast",
    "CV": "Cape Verde",
    "CW": "Curaçao",
    "CZ": "Czech Republic",
    "MO": "Macau",
    "NL": "Netherlands",
    "PN": "Pitcairn Islands",
    "PS": "Palestine",
    "RE": "Réunion",
    "ST": "São Tomé and Príncipe",
    "TL": "East Timor",
    "VA": "Vatican City",
}
# No permanent inhabitants, or no longer existing: nothing worth asking.
NO_COUNTRY = frozenset({"AN", "AQ", "BQ", "BV", "CS", "GS", "HM", "TF", "UM"})
WITH_ARTICLE = frozenset(words("AE BS CC CD CF CG CK DO FK FO GM IM KM KY MH MP MV NL PH PN SB TC US VG VI GB"))
CAPITALS = {
    "AG": "St. John's",
    "BI": "Gitega",
    "EH": "",  # disputed
    "GQ": "Malabo",
    "KZ": "Astana",
    "MM": "Naypyidaw",
    "PS": "",  # disputed
    "PW": "Ngerulmud",
    "US": "Washington, D.C.",
    "YE": "Sanaa",
}
# Names that people use beside the title, where the sources do not list them.
COUNTRY_ALIASES = {
    "CI": ("Côte d'Ivoire",),
    "CZ": ("Czechia",),
    "GB": ("Great Britain", "England", "Scotland", "Wales", "Northern Ireland", "UK"),
    "KR": ("Korea",),
    "MM": ("Burma",),
    "NL": ("Holland",),
    "TR": ("Türkiye",),
    "US": ("USA", "U.S."),
}
LANGUAGES = {
    "af": "Afrikaans", "am": "Amharic", "ar": "Arabic", "ay": "Aymara", "az": "Azerbaijani", "be": "Belarusian",
    "bg": "Bulgarian", "bi": "Bislama", "bn": "Bengali", "bs": "Bosnian", "ca": "Catalan", "ch": "Chamorro",
    "cnr": "Montenegrin", "cs": "Czech", "da": "Danish", "de": "German", "dv": "Dhivehi", "dz": "Dzongkha",
    "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian", "fa": "Persian", "fi": "Finnish",
    "fj": "Fijian", "fo": "Faroese", "fr": "French", "ga": "Irish", "gn": "Guarani", "gv": "Manx", "he": "Hebrew",
    "hi": "Hindi", "hr": "Croatian", "ht": "Haitian Creole", "hu": "Hungarian", "hy": "Armenian",
    "id": "Indonesian", "is": "Icelandic", "it": "Italian", "ja": "Japanese", "ka": "Georgian", "kk": "Kazakh",
    "kl": "Greenlandic", "km": "Khmer", "ko": "Korean", "ku": "Kurdish", "ky": "Kyrgyz", "la": "Latin",
    "lb": "Luxembourgish", "lo": "Lao", "lt": "Lithuanian", "lv": "Latvian", "mg": "Malagasy",
    "mh": "Marshallese", "mi": "Māori", "mk": "Macedonian", "mn": "Mongolian", "ms": "Malay", "mt": "Maltese",
    "my": "Burmese", "na": "Nauruan", "nb": "Norwegian", "ne": "Nepali", "nl": "Dutch", "no": "Norwegian",
    "ny": "Chichewa", "pl": "Polish", "ps": "Pashto", "pt": "Portuguese", "qu": "Quechua", "rn": "Kirundi",
    "ro": "Romanian", "ru": "Russian", "rw": "Kinyarwanda", "sg": "Sango", "si": "Sinhala", "sk": "Slovak",
    "sl": "Slovene", "sm": "Samoan", "so": "Somali", "sq": "Albanian", "sr": "Serbian", "ss": "Swazi",
    "st": "Sotho", "sv": "Swedish", "sw": "Swahili", "ta": "Tamil", "tg": "Tajik", "th": "Thai",
    "ti": "Tigrinya", "tk": "Turkmen", "tn": "Tswana", "to": "Tongan", "tr": "Turkish", "uk": "Ukrainian",
    "ur": "Urdu", "uz": "Uzbek", "vi": "Vietnamese", "zh": "Chinese", "zu": "Zulu",
}  # fmt: skip
CURRENCIES = {
    "AED": "UAE dirham", "AFN": "Afghan afghani", "ALL": "Albanian lek", "AMD": "Armenian dram",
    "ANG": "Antillean guilder", "AOA": "Angolan kwanza", "ARS": "Argentine peso", "AUD": "Australian dollar",
    "AWG": "Aruban florin", "AZN": "Azerbaijani manat", "BAM": "convertible mark", "BBD": "Barbadian dollar",
    "BDT": "Bangladeshi taka", "BGN": "Bulgarian lev", "BHD": "Bahraini dinar", "BIF": "Burundian franc",
    "BMD": "Bermudian dollar", "BND": "Brunei dollar", "BOB": "boliviano", "BRL": "Brazilian real",
    "BSD": "Bahamian dollar", "BTN": "ngultrum", "BWP": "Botswana pula", "BYN": "Belarusian ruble",
    "BZD": "Belize dollar", "CAD": "Canadian dollar", "CDF": "Congolese franc", "CHF": "Swiss franc",
    "CLP": "Chilean peso", "CNY": "Chinese yuan", "COP": "Colombian peso", "CRC": "Costa Rican colón",
    "CUP": "Cuban peso", "CVE": "Cape Verdean escudo", "CZK": "Czech koruna", "DJF": "Djiboutian franc",
    "DKK": "Danish krone", "DOP": "Dominican peso", "DZD": "Algerian dinar", "EGP": "Egyptian pound",
    "ERN": "nakfa", "ETB": "Ethiopian birr", "EUR": "euro", "FJD": "Fijian dollar", "FKP": "Falkland Islands pound",
    "GBP": "pound sterling", "GEL": "lari", "GHS": "Ghanaian cedi", "GIP": "Gibraltar pound", "GMD": "dalasi",
    "GNF": "Guinean franc", "GTQ": "quetzal", "GYD": "Guyanese dollar", "HKD": "Hong Kong dollar",
    "HNL": "lempira", "HTG": "gourde", "HUF": "forint", "IDR": "rupiah", "ILS": "new shekel", "INR": "Indian rupee",
    "IQD": "Iraqi dinar", "IRR": "Iranian rial", "ISK": "Icelandic króna", "JMD": "Jamaican dollar",
    "JOD": "Jordanian dinar", "JPY": "yen", "KES": "Kenyan shilling", "KGS": "Kyrgyz som", "KHR": "riel",
    "KMF": "Comorian franc", "KPW": "North Korean won", "KRW": "South Korean won", "KWD": "Kuwaiti dinar",
    "KYD": "Cayman Islands dollar", "KZT": "tenge", "LAK": "kip", "LBP": "Lebanese pound",
    "LKR": "Sri Lankan rupee", "LRD": "Liberian dollar", "LSL": "loti", "LYD": "Libyan dinar",
    "MAD": "Moroccan dirham", "MDL": "Moldovan leu", "MGA": "ariary", "MKD": "denar", "MMK": "kyat",
    "MNT": "tugrik", "MOP": "pataca", "MRU": "ouguiya", "MUR": "Mauritian rupee", "MVR": "rufiyaa",
    "MWK": "Malawian kwacha", "MXN": "Mexican peso", "MYR": "ringgit", "MZN": "metical", "NAD": "Namibian dollar",
    "NGN": "naira", "NIO": "córdoba", "NOK": "Norwegian krone", "NPR": "Nepalese rupee",
    "NZD": "New Zealand dollar", "OMR": "Omani rial", "PAB": "balboa", "PEN": "Peruvian sol", "PGK": "kina",
    "PHP": "Philippine peso", "PKR": "Pakistani rupee", "PLN": "złoty", "PYG": "Paraguayan guaraní",
    "QAR": "Qatari riyal", "RON": "Romanian leu", "RSD": "Serbian dinar", "RUB": "Russian ruble",
    "RWF": "Rwandan franc", "SAR": "Saudi riyal", "SBD": "Solomon Islands dollar", "SCR": "Seychellois rupee",
    "SDG": "Sudanese pound", "SEK": "Swedish krona", "SGD": "Singapore dollar", "SHP": "Saint Helena pound",
    "SLE": "leone", "SOS": "Somali shilling", "SRD": "Surinamese dollar", "SSP": "South Sudanese pound",
    "STN": "dobra", "SYP": "Syrian pound", "SZL": "lilangeni", "THB": "baht", "TJS": "somoni",
    "TMT": "Turkmen manat", "TND": "Tunisian dinar", "TOP": "paʻanga", "TRY": "Turkish lira",
    "TTD": "Trinidad and Tobago dollar", "TWD": "New Taiwan dollar", "TZS": "Tanzanian shilling",
    "UAH": "hryvnia", "UGX": "Ugandan shilling", "USD": "US dollar", "UYU": "Uruguayan peso",
    "UZS": "Uzbekistani som", "VES": "bolívar", "VND": "đồng", "VUV": "vatu", "WST": "tala",
    "XAF": "Central African CFA franc", "XCD": "East Caribbean dollar", "XCG": "Caribbean guilder",
    "XOF": "West African CFA franc", "XPF": "CFP franc", "YER": "Yemeni rial", "ZAR": "rand",
    "ZMW": "Zambian kwacha",
}  # fmt: skip
# Discoverers whose names the source misspells.
SPELLING = {
    "Sir Humphrey Davy": "Humphry Davy", "Fredrich Wöhler": "Friedrich Wöhler", "George Brandt": "Georg Brandt",
    "Charles Hatchet": "Charles Hatchett", "Fredrich Stromeyer": "Friedrich Stromeyer",
    "Smithson Tenant": "Smithson Tennant", "Marguerite Derey": "Marguerite Perey", "Axel Cronstedt": "Axel Cronstedt",
    "Sir William Crookes": "William Crookes", "Fredrich Ernst Dorn": "Friedrich Ernst Dorn",
}  # fmt: skip
SERIES = {
    "Nonmetals": "a nonmetal", "Noble gases": "a noble gas", "Alkali metals": "an alkali metal",
    "Alkaline earth metals": "an alkaline earth metal", "Metalloids": "a metalloid", "Halogens": "a halogen",
    "Poor metals": "a post-transition metal", "Transition metals": "a transition metal",
    "Lanthanides": "a lanthanide", "Actinides": "an actinide",
}  # fmt: skip
# Cities of these names (there are such) would be found in every second sentence.
ORDINARY_WORDS = frozenset(
    words("""
and are at bar island best big bo born but by can car do east for from give has how in is it lead like list male man
may most name new no north not of on one or our same say see she south state ten the then this time tin to
tree two union up us vice was west what when which why will with word write you your port city
airport gold silver iron copper zinc
""")
)

_NO_DECOMPOSITION = str.maketrans(dict(zip("øØłŁđĐıʻ’", "oOlLdDi''", strict=True)) | {"ß": "ss"})


def fold(text: str) -> str:
    """The text without accents: `Bogotá` and `Bogota` are one name."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text.translate(_NO_DECOMPOSITION))
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def capitalise(text: str) -> str:
    """The text with its first letter in upper case and nothing else changed."""
    return text[:1].upper() + text[1:]


def possessive(name: str) -> str:
    """ "Oman's", "Cyprus'"."""
    return name + ("'" if name.endswith("s") else "'s")


def join_list(items: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


def natural_number(value: float) -> str:
    """A count as an almanac prints it: three figures above a thousand, `1.23 million` above a million."""
    if value >= 999_500_000:
        return f"{value / 1e9:.2f} billion"
    if value >= 999_500:
        return f"{value / 1e6:.3g} million"
    if value >= 1000:
        step = 10 ** (len(str(int(value))) - 3)
        return f"{round(value / step) * step:,}"
    return str(round(value))


def ordinary_name(name: str) -> bool:
    """Whether a source's name reads as a name: letters, spaces and the usual punctuation, of a sensible length."""
    plain = sum(c.isascii() for c in name) >= len(name) - 3
    return 3 <= len(name) <= 36 and plain and bool(re.fullmatch(r"[^\W\d_]+(?:[ .'’-]{1,2}[^\W\d_]+)*\.?", name))
