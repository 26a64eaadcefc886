package heuristic

// howtoCues speak for instructions that hold beyond the moment. An imperative
// alone is a request, not a how-to: a purpose, an order of steps or an
// obligation makes it one.
var howtoCues = []cue{
	{at: "^ to @do|@ask|_ …  @do", yes: "To renew the certificate run certbot there.", no: "I went to the shop to make a call."},
	{at: "^ to _ … , @do", yes: "To run the tests locally, start the database.", no: "To be fair, that was a good game."},
	{at: "^ to _ … :", yes: "To wipe the cache: stop, delete, start.", no: "He went to the shop: closed again."},
	{at: "@you need|have|want|ought to @do|@ask", mode: when, yes: "You need to set the flag before the build.", no: "Do you have to leave so early today?"},
	{at: "@you must|should|can @do", mode: when, yes: "You must restart the agent after that.", no: "Should you restart the agent at night?"},
	{at: "@do|unplug~ … , then", mode: when, yes: "Unplug it, then hold the button down.", no: "We ate, then she took the bus home."},
	{at: "^ first @do|unplug", mode: when, yes: "First install the agent on the host.", no: "The first install was on a Monday."},
	{at: "then|afterwards|finally @do", mode: when, yes: "Stop the writer, then start the reader.", no: "We had some tea and then she left."},
	{at: "and @do", mode: weak | when, yes: "To reset it, hold the key and press reset.", no: "The start and the end of the road."},
	{at: "^ @do … before|until", yes: "Run the seed script before the suite.", no: "The seed was sown before the rain."},
	{at: "^ @do … to @do|@ask", yes: "Use make dev to start everything here.", no: "It takes an hour to start the engine."},
	{at: "^ @do … by @ing", yes: "Enable verbose logs by sending a signal.", no: "The road by the building is closed."},
	{at: "by @ing", mode: weak | when, yes: "Enable the log by sending it a signal.", no: "The house by the sea is for sale."},
	{at: "before|after|when @ing", mode: weak | when, yes: "You need to set the flag before building.", no: "Before the war the town was rich."},
	{at: "or|otherwise … will|won't fail|start|work|break|crash", mode: weak | when | denied, yes: "Run the seed before it or half will fail.", no: "She will start at nine or ten o'clock."},
	{at: "how @i @do|restore|release|deploy|_ …  :", yes: "How we restore it: stop the writer first.", no: "How we laughed about it in the end!"},
	{at: "steps|procedure|recipe|instructions to|for|:", yes: "The steps for a release: tag, build, push.", no: "The steps were wet after the rain."},
	{at: "@be just|only|as|simply simple|run|`|@do", mode: weak, yes: "To deploy, the rest is just run and wait.", no: "It is late and the shop is closed."},
	{at: "@ing … @be just|simply|only|done|easy", yes: "Deploying the docs is simply done with make.", no: "The building is on the other side."},
	{at: "^ @ing … :", yes: "Getting into the office: badge at the door.", no: "The meeting was short: nobody came."},
	{at: ": @do", mode: when, yes: "Getting in at night: press the bell twice.", no: "One thing is clear: the team is great."},
	{at: "hold … button|key|for", mode: when, yes: "First unplug it, then hold the button down.", no: "They hold a fair in the town in May."},
	{at: "the way|easiest|trick|fastest to … @be to", yes: "The way to fix the lock is to oil the pin.", no: "It is a long way to the next town."},
	{at: "trick is to", yes: "The trick is to salt the water early.", no: "It was a trick of the evening light."},
	{at: "make sure|certain that|to|@you", mode: when | denied, yes: "To deploy, make sure that the tag exists.", no: "I am sure it will make us all laugh."},
}
