"""The kinds of fact, one table: how a passage states each, how a question asks for it, how an answer says it.

In the templates `{x}` is the entity inside a sentence ("the Netherlands"), `{v}` the value; a sentence is
capitalised afterwards. `full` names the entity and `short` leaves it out (for sentences after the first). The last
entries of `full`, `short` and `ask`, as many as `HELD_OUT_WORDINGS`, are for held-out wordings only.
"""

import dataclasses

HELD_OUT_WORDINGS = {"full": 1, "short": 1, "ask": 1}


@dataclasses.dataclass(frozen=True)
class Relation:
    """One kind of fact. `noun` names the fact ("the capital of {x}"); `answer` states it in an answer."""

    key: str
    noun: str
    answer: str
    full: tuple[str, ...]
    short: tuple[str, ...]
    ask: tuple[str, ...]


COUNTRY = (
    Relation(
        "capital", "the capital of {x}", "The capital of {x} is {v}.",
        ("The capital of {x} is {v}.", "Capital of {x}: {v}.", "{x} has its capital at {v}.",
         "{v} is the capital of {x}.",
         "The government of {x} sits in {v}, the capital.", "{x} is governed from {v}, its capital city."),
        ("Its capital is {v}.", "Capital: {v}.", "The capital is {v}.", "{v} is its capital.",
         "{v} serves as the capital city."),
        ("What is the capital of {x}?", "Which city is the capital of {x}?", "Name the capital city of {x}.",
         "What's the capital city of {x}?", "{x} has which city as its capital?"),
    ),
    Relation(
        "region", "the region in which {x} lies", "{x} lies in {v}.",
        ("{x} lies in {v}.", "{x} is situated in {v}.", "{x} belongs to {v}.", "On a map {x} is in {v}."),
        ("It lies in {v}.", "It is part of {v}.", "It belongs to {v}.", "On a map it is in {v}."),
        ("In which part of the world is {x}?", "Where does {x} lie?", "Which region of the world does {x} belong to?",
         "In what region would you find {x}?"),
    ),
    Relation(
        "area", "the area of {x}", "The area of {x} is {v}.",
        ("{x} covers {v}.", "Area of {x}: {v}.", "The area of {x} is {v}.", "{x} has an area of {v}.",
         "The territory of {x} extends over {v}."),
        ("It covers {v}.", "Area: {v}.", "Its area is {v}.", "The land measures {v}.",
         "The territory extends over {v}."),
        ("How large is {x}?", "What is the area of {x}?", "How big is the territory of {x}?",
         "What area does {x} take up?"),
    ),
    Relation(
        "neighbours", "the list of countries that border {x}", "{x} borders {v}.",
        ("{x} borders {v}.", "{x} shares its land borders with {v}.", "On land {x} has these neighbours: {v}.",
         "{x} is bounded on land by {v}."),
        ("It borders {v}.", "It shares land borders with {v}.", "On land its neighbours are {v}.",
         "On land it is bounded by {v}."),
        ("Which countries border {x}?", "What does {x} border?", "Which are the neighbours of {x}?",
         "Who shares a land border with {x}?"),
    ),
    Relation(
        "population", "the population of {x}", "The population of {x} is about {v}.",
        ("About {v} people live in {x}.", "Population of {x}: about {v}.", "{x} has a population of about {v}.",
         "The population of {x} is about {v}.",
         "{x} is home to roughly {v} people."),
        ("About {v} people live there.", "Population: about {v}.", "Its population is about {v}.",
         "It has some {v} inhabitants.",
         "It is home to roughly {v} people."),
        ("How many people live in {x}?", "What is the population of {x}?", "How many inhabitants does {x} have?",
         "About how many people call {x} home?"),
    ),
    Relation(
        "languages", "the official language of {x}", "People in {x} officially use {v}.",
        ("People in {x} officially use {v}.", "Official papers in {x} are written in {v}.",
         "For official purposes {x} uses {v}.", "In {x} the state speaks to its people in {v}."),
        ("Officially people use {v}.", "Official papers are written in {v}.", "For official purposes it uses {v}.",
         "The state speaks to its people in {v}."),
        ("What is the official language of {x}?", "Which language is official in {x}?",
         "What language do people in {x} officially speak?", "In {x}, what language does the state use?"),
    ),
    Relation(
        "demonym", "the word for a person from {x}", "A person from {x} is called {v}.",
        ("A person from {x} is called {v}.", "Somebody from {x} is {v}.", "The demonym for {x} is {v}.",
         "The adjective for the people of {x} is {v}."),
        ("A person from there is called {v}.", "The demonym is {v}.", "Its people are described as {v}.",
         "The adjective for its people is {v}."),
        ("What is a person from {x} called?", "What is the demonym for {x}?", "What do you call somebody from {x}?",
         "What word describes someone who comes from {x}?"),
    ),
    Relation(
        "currency", "the currency of {x}", "The currency of {x} is the {v}.",
        ("The currency of {x} is the {v}.", "Currency of {x}: {v}.", "{x} uses the {v} as its currency.",
         "People in {x} pay with the {v}.",
         "Prices in {x} are given in the {v}, its currency."),
        ("The currency is the {v}.", "Currency: {v}.", "People pay with the {v}.", "It uses the {v} as its money.",
         "Prices are given in the local currency, the {v}."),
        ("What is the currency of {x}?", "Which currency is used in {x}?", "What money do people use in {x}?",
         "With which currency do you pay in {x}?"),
    ),
    Relation(
        "currency_code", "the currency code of {x}", "The currency code of {x} is {v}.",
        ("The currency code of {x} is {v}.", "Banks write the currency of {x} as {v}.",
         "{x} has the currency code {v}.",
         "The three letters {v} stand for the currency of {x}."),
        ("Its currency code is {v}.", "Banks write the currency as {v}.", "The code of the currency is {v}.",
         "The three letters {v} stand for its currency."),
        ("What is the currency code of {x}?", "Which code stands for the currency of {x}?",
         "By which code do banks know the currency of {x}?", "What three letters stand for the currency of {x}?"),
    ),
    Relation(
        "calling_code", "the calling code of {x}", "The calling code of {x} is {v}.",
        ("The calling code of {x} is {v}.", "Telephone numbers in {x} begin with {v}.",
         "To call {x} one dials {v} first.",
         "Calls to {x} from abroad start with {v}."),
        ("The calling code is {v}.", "Telephone numbers begin with {v}.", "Callers from abroad dial {v} first.",
         "Calls from abroad start with {v}."),
        ("What is the calling code of {x}?", "Which telephone code does {x} have?",
         "What do you dial first to call {x}?",
         "Which prefix do phone numbers in {x} have?"),
    ),
    Relation(
        "tld", "the internet domain of {x}", "The internet domain of {x} is {v}.",
        ("The internet domain of {x} is {v}.", "Web addresses from {x} end in {v}.", "{x} has the internet domain {v}.",
         "On the web, addresses of {x} carry the ending {v}."),
        ("The internet domain is {v}.", "Web addresses end in {v}.", "Its internet domain is {v}.",
         "Its web addresses carry the ending {v}."),
        ("What is the internet domain of {x}?", "Which top-level domain belongs to {x}?",
         "How do web addresses in {x} end?",
         "What ending do websites of {x} carry?"),
    ),
)  # fmt: skip

CITY = (
    Relation(
        "city_country", "the country in which {x} lies", "{x} is in {v}.",
        ("{x} is a city in {v}.", "{x} lies in {v}.", "The city of {x} belongs to {v}.",
         "You will find the city of {x} in {v}."),
        ("The city lies in {v}.", "It belongs to {v}.", "It is a city of {v}.", "You will find the city in {v}."),
        ("In which country is {x}?", "Which country does the city of {x} belong to?", "What country is {x} in?",
         "{x} is a city of which country?"),
    ),
    Relation(
        "city_population", "the population of {x}", "The population of {x} is about {v}.",
        ("About {v} people live in {x}.", "Population of {x}: about {v}.", "{x} has a population of about {v}.",
         "The population of {x} is about {v}.",
         "{x} is home to roughly {v} people."),
        ("About {v} people live there.", "Population: about {v}.", "Its population is about {v}.",
         "It has some {v} inhabitants.",
         "It is home to roughly {v} people."),
        ("How many people live in {x}?", "What is the population of {x}?", "How many inhabitants does {x} have?",
         "About how many people call {x} home?"),
    ),
    Relation(
        "city_latitude", "the latitude of {x}", "The latitude of {x} is {v}.",
        ("{x} lies at a latitude of {v}.", "The latitude of {x} is {v}.", "{x} stands {v} of the equator.",
         "On the globe {x} is at {v}."),
        ("Its latitude is {v}.", "It lies {v} of the equator.", "The latitude there is {v}.",
         "On the globe it is at {v}."),
        ("What is the latitude of {x}?", "At which latitude does {x} lie?", "How far north or south is {x}?",
         "What latitude would a map give for {x}?"),
    ),
    Relation(
        "city_time_zone", "the time zone of {x}", "The time zone of {x} is {v}.",
        ("The time zone of {x} is {v}.", "Clocks in {x} follow the zone {v}.", "{x} keeps the time of {v}.",
         "Local time in {x} is that of {v}."),
        ("The time zone is {v}.", "Clocks follow the zone {v}.", "It keeps the time of {v}.",
         "Local time is that of {v}."),
        ("What is the time zone of {x}?", "Which time zone is {x} in?", "Which time zone do clocks in {x} follow?",
         "By which time zone does {x} live?"),
    ),
    Relation(
        "nearest_airport", "the airport nearest to {x}", "The airport nearest to {x} is {v}.",
        ("The airport nearest to {x} is {v}.", "{v} is the nearest airport to {x}.",
         "The closest airport to {x} is {v}.",
         "No airport is closer to {x} than {v}."),
        ("The nearest airport is {v}.", "{v} is the closest airport.", "The closest airport is {v}.",
         "No airport is closer than {v}."),
        ("Which airport is nearest to {x}?", "What is the closest airport to {x}?", "Name the airport nearest to {x}.",
         "If I fly to {x}, which airport is the closest?"),
    ),
    Relation(
        "airport_distance", "the distance from {x} to the nearest airport",
        "The nearest airport is about {v} from {x}.",
        ("From {x} to the nearest airport it is about {v}.", "{x} is about {v} from the nearest airport.",
         "The nearest airport is some {v} away from {x}.", "Between {x} and the closest airport there are about {v}."),
        ("That airport is about {v} away.", "It is about {v} to that airport.", "The distance to it is about {v}.",
         "Between the two are about {v}."),
        ("How far is {x} from the nearest airport?", "How far is it from {x} to the nearest airport?",
         "What is the distance from {x} to the nearest airport?",
         "How many kilometres separate {x} and the nearest airport?"),
    ),
    Relation(
        "city_currency", "the currency used in {x}", "In {x} people pay with the {v}.",
        ("In {x} people pay with the {v}.", "Prices in {x} are in the {v}.", "The money used in {x} is the {v}.",
         "Shops in {x} take the {v}."),
        ("People pay with the {v}.", "Prices are in the {v}.", "The money used is the {v}.", "Shops take the {v}."),
        ("Which currency do people use in {x}?", "What is the currency used in {x}?", "What money do I need in {x}?",
         "With which money would I pay in a shop in {x}?"),
    ),
)  # fmt: skip

AIRPORT = (
    Relation(
        "airport_city", "the town that {x} serves", "{x} serves {v}.",
        ("{x} serves {v}.", "{x} is the airport of {v}.", "{x} is an airport for {v}.",
         "The town served by {x} is {v}."),
        ("It serves {v}.", "It is the airport of {v}.", "It is an airport for {v}.", "The town it serves is {v}."),
        ("Which town does {x} serve?", "Which city is served by {x}?", "What place does {x} serve?",
         "For which town was {x} built?"),
    ),
    Relation(
        "airport_country", "the country in which {x} lies", "{x} is in {v}.",
        ("{x} is an airport in {v}.", "{x} lies in {v}.", "{x} can be found in {v}.", "The country around {x} is {v}."),
        ("It lies in {v}.", "The airport is in {v}.", "It can be found in {v}.", "The country around it is {v}."),
        ("In which country is {x}?", "Which country is {x} in?", "What country does {x} lie in?",
         "{x} is an airport of which country?"),
    ),
    Relation(
        "elevation", "the elevation of {x}", "The elevation of {x} is {v}.",
        ("{x} has an elevation of {v}.", "The elevation of {x} is {v}.", "{x} lies at {v} above sea level.",
         "The runways of {x} are {v} above the sea."),
        ("Its elevation is {v}.", "It lies at {v} above sea level.", "The elevation there is {v}.",
         "The runways are {v} above the sea."),
        ("What is the elevation of {x}?", "How high is {x}?", "At what elevation does {x} lie?",
         "How many feet above the sea is {x}?"),
    ),
    Relation(
        "iata", "the IATA code of {x}", "The IATA code of {x} is {v}.",
        ("The IATA code of {x} is {v}.", "Airlines know {x} by the IATA code {v}.", "{x} has the IATA code {v}.",
         "Tickets to {x} show the IATA code {v}."),
        ("Its IATA code is {v}.", "Airlines use the IATA code {v}.", "The IATA code is {v}.",
         "Tickets show the IATA code {v}."),
        ("What is the IATA code of {x}?", "Which IATA code does {x} have?", "By which IATA code do airlines know {x}?",
         "What IATA code is printed on a ticket to {x}?"),
    ),
    Relation(
        "icao", "the ICAO code of {x}", "The ICAO code of {x} is {v}.",
        ("The ICAO code of {x} is {v}.", "Pilots know {x} by the ICAO code {v}.", "{x} has the ICAO code {v}.",
         "Flight plans list {x} under ICAO code {v}."),
        ("Its ICAO code is {v}.", "Pilots use the ICAO code {v}.", "The ICAO code is {v}.",
         "Flight plans list it under ICAO code {v}."),
        ("What is the ICAO code of {x}?", "Which ICAO code does {x} have?", "By which ICAO code do pilots know {x}?",
         "What ICAO code goes into a flight plan for {x}?"),
    ),
    Relation(
        "airport_time_zone", "the time zone of {x}", "The time zone of {x} is {v}.",
        ("The time zone of {x} is {v}.", "Clocks at {x} follow the zone {v}.", "{x} keeps the time of {v}.",
         "Local time at {x} is that of {v}."),
        ("The time zone is {v}.", "Clocks follow the zone {v}.", "It keeps the time of {v}.",
         "Local time is that of {v}."),
        ("What is the time zone of {x}?", "Which time zone is {x} in?", "Which time zone do clocks at {x} follow?",
         "By which time zone does {x} run?"),
    ),
    Relation(
        "airport_latitude", "the latitude of {x}", "The latitude of {x} is {v}.",
        ("{x} lies at a latitude of {v}.", "The latitude of {x} is {v}.", "{x} stands {v} of the equator.",
         "On the globe {x} is at {v}."),
        ("Its latitude is {v}.", "It lies {v} of the equator.", "The latitude there is {v}.",
         "On the globe it is at {v}."),
        ("What is the latitude of {x}?", "At which latitude does {x} lie?", "How far north or south is {x}?",
         "What latitude would a map give for {x}?"),
    ),
)  # fmt: skip

ELEMENT = (
    Relation(
        "symbol", "the symbol of {x}", "The symbol of {x} is {v}.",
        ("The symbol of {x} is {v}.", "{x} has the chemical symbol {v}.", "Chemists write {x} as {v}.",
         "In a formula {x} is written {v}."),
        ("Its symbol is {v}.", "The chemical symbol is {v}.", "Chemists write it as {v}.",
         "In a formula it is written {v}."),
        ("What is the symbol of {x}?", "What is the chemical symbol for {x}?", "How do chemists write {x}?",
         "Which letters stand for {x} in a formula?"),
    ),
    Relation(
        "atomic_number", "the atomic number of {x}", "The atomic number of {x} is {v}.",
        ("The atomic number of {x} is {v}.", "{x} has the atomic number {v}.",
         "{x} is the element with atomic number {v}.",
         "With the atomic number {v}, {x} has its fixed place among the elements."),
        ("Its atomic number is {v}.", "The atomic number is {v}.", "It has the atomic number {v}.",
         "It is number {v} among the elements, by atomic number."),
        ("What is the atomic number of {x}?", "Which atomic number does {x} have?",
         "What atomic number belongs to {x}?",
         "Which number does {x} carry among the elements?"),
    ),
    Relation(
        "series", "the family of elements to which {x} belongs", "{x} is {v}.",
        ("{x} is {v}.", "{x} is classed as {v}.", "Chemists count {x} as {v}.",
         "Among the elements, {x} is regarded as {v}."),
        ("It is {v}.", "It is classed as {v}.", "Chemists count it as {v}.", "It is regarded as {v}."),
        ("What kind of element is {x}?", "To which family of elements does {x} belong?", "What type of element is {x}?",
         "How is {x} classified by chemists?"),
    ),
    Relation(
        "group", "the group of {x}", "The group of {x} is {v}.",
        ("{x} is in group {v}.", "{x} belongs to group {v} of the periodic table.", "The group of {x} is {v}.",
         "In the periodic table {x} has its column in group {v}."),
        ("It is in group {v}.", "It belongs to group {v}.", "Its group is {v}.", "Its column is group {v}."),
        ("Which group of the periodic table is {x} in?", "What is the group of {x}?", "To which group does {x} belong?",
         "In which column, or group, does {x} stand?"),
    ),
    Relation(
        "period", "the period of {x}", "The period of {x} is {v}.",
        ("{x} is in period {v}.", "{x} belongs to period {v} of the periodic table.", "The period of {x} is {v}.",
         "In the periodic table {x} has its row in period {v}."),
        ("It is in period {v}.", "It belongs to period {v}.", "Its period is {v}.", "Its row is period {v}."),
        ("Which period of the periodic table is {x} in?", "What is the period of {x}?",
         "To which period does {x} belong?",
         "In which row, or period, does {x} stand?"),
    ),
    Relation(
        "block", "the block of {x}", "{x} is in the {v}.",
        ("{x} is in the {v}.", "{x} belongs to the {v}.", "{x} is an element of the {v}.",
         "The {v} is where {x} stands."),
        ("It is in the {v}.", "It belongs to the {v}.", "It is an element of the {v}.", "The {v} is where it stands."),
        ("Which block of the periodic table is {x} in?", "What is the block of {x}?", "To which block does {x} belong?",
         "In what block would a table show {x}?"),
    ),
    Relation(
        "atomic_mass", "the atomic mass of {x}", "The atomic mass of {x} is {v}.",
        ("The atomic mass of {x} is {v}.", "{x} has an atomic mass of {v}.", "An atom of {x} has a mass of {v} units.",
         "Atoms of {x} weigh {v} atomic mass units."),
        ("Its atomic mass is {v}.", "The atomic mass is {v}.", "An atom has a mass of {v} units.",
         "Its atoms weigh {v} atomic mass units."),
        ("What is the atomic mass of {x}?", "Which atomic mass does {x} have?", "How heavy is an atom of {x}?",
         "What do atoms of {x} weigh in atomic mass units?"),
    ),
    Relation(
        "density", "the density of {x}", "The density of {x} is {v}.",
        ("The density of {x} is {v}.", "{x} has a density of {v}.", "In density {x} comes to {v}.",
         "For its density, {x} measures {v}."),
        ("Its density is {v}.", "The density is {v}.", "In density it comes to {v}.",
         "For its density it measures {v}."),
        ("What is the density of {x}?", "Which density does {x} have?", "How dense is {x}?",
         "What density do tables give for {x}?"),
    ),
    Relation(
        "discoverer", "the discoverer of {x}", "{x} was discovered by {v}.",
        ("{x} was discovered by {v}.", "The discoverer of {x} was {v}.", "{v} discovered {x}.",
         "Credit for finding {x} goes to {v}."),
        ("It was discovered by {v}.", "Its discoverer was {v}.", "{v} discovered it.",
         "Credit for finding it goes to {v}."),
        ("Who discovered {x}?", "By whom was {x} discovered?", "Who was the discoverer of {x}?",
         "To whom do we owe the discovery of {x}?"),
    ),
    Relation(
        "discovery_year", "the year in which {x} was discovered", "{x} was discovered in {v}.",
        ("{x} was discovered in {v}.", "The discovery of {x} dates from {v}.", "{x} has been known since {v}.",
         "The year {v} brought the discovery of {x}."),
        ("It was discovered in {v}.", "The discovery dates from {v}.", "It has been known since {v}.",
         "The year {v} brought its discovery."),
        ("When was {x} discovered?", "In which year was {x} discovered?", "What year was {x} discovered in?",
         "Since when has {x} been known?"),
    ),
    Relation(
        "origin", "the origin of the name of {x}", "The name of {x} comes from {v}.",
        ("The name of {x} comes from {v}.", "{x} is named after {v}.", "The name {x} goes back to {v}.",
         "The root of the name {x} is {v}."),
        ("The name comes from {v}.", "It is named after {v}.", "Its name goes back to {v}.",
         "The root of its name is {v}."),
        ("Where does the name of {x} come from?", "What is the origin of the name of {x}?", "What is {x} named after?",
         "From which word did {x} get its name?"),
    ),
)  # fmt: skip

RELATIONS = {r.key: r for r in (*COUNTRY, *CITY, *AIRPORT, *ELEMENT)}
