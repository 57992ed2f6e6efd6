"""Which facts stand together in a passage: an entity's are spread over several, so that one look is not enough."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Group:
    """The relations that one passage tells, and its possible titles (the last one for held-out templates)."""

    key: str
    titles: tuple[str, ...]
    relations: tuple[str, ...]


GROUPS = {
    "country": (
        Group("main", ("{t}", "{t}", "{t} (country)"), ("region", "capital", "demonym")),
        Group("land", ("Geography of {x}", "The land of {x}", "Where {x} lies"), ("area", "neighbours")),
        Group("people", ("Demographics of {x}", "People of {x}", "Who lives in {x}"), ("population", "languages")),
        Group("money", ("Economy of {x}", "Money in {x}", "Paying in {x}"), ("currency", "currency_code")),
        Group("media", ("Communications in {x}", "Telephones and internet in {x}", "Calling {x}"), ("calling_code",
            "tld")),
    ),
    "city": (
        Group("main", ("{t}", "{t}", "{t} (city)"), ("city_country", "city_population", "city_latitude")),
        Group("travel", ("Travel to {x}", "Visiting {x}", "A trip to {x}"),
              ("city_time_zone", "nearest_airport", "airport_distance", "city_currency")),
    ),
    "airport": (
        Group("main", ("{t}", "{t}", "{t} (place)"), ("airport_city", "airport_country", "elevation")),
        Group("codes", ("Flying to {x}", "{x} in flight plans", "{x} for pilots"),
              ("iata", "icao", "airport_time_zone", "airport_latitude")),
    ),
    "element": (
        Group("main", ("{t}", "{t}", "{t} (element)"), ("symbol", "atomic_number", "series")),
        Group("table", ("{t} in the periodic table", "Place of {x} in the periodic table",
            "Where {x} stands in the table"),
              ("group", "period", "block")),
        Group("physics", ("Properties of {x}", "Physics of {x}", "{t} in numbers"), ("atomic_mass", "density")),
        Group("history", ("Discovery of {x}", "History of {x}", "How {x} was found"),
              ("discoverer", "discovery_year", "origin")),
    ),
}  # fmt: skip
