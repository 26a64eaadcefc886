package heuristic

// wordClass lists words of a class, in folded form.
type wordClass struct {
	class class
	words string
}

// wordClasses are the word lists of the rules, in folded form. A word may stand
// in several.
var wordClasses = []wordClass{
	{first | function, `i we i'm we're i've we've i'll we'll i'd we'd us me myself ourselves`},
	{own | determin | function, `my our`},
	{second | function, `you you're you've you'll you'd your yours y'all`},
	{third | function, `he she they it he's she's they're it's he'll she'll they'll it'll they've he'd she'd they'd it'd him her them his its their hers theirs`},
	{determin | function, `the a an this that these those every each any some no all both either neither another`},
	{auxil | filler | function, `is are was were be been being am has have had do does did will shall can`},
	{auxil | function, `would could should may might must ought isn't aren't wasn't weren't hasn't haven't hadn't don't doesn't didn't won't can't cannot couldn't shouldn't wouldn't mustn't needn't ain't`},
	{negation, `not never no none nobody nothing neither nor isn't aren't wasn't weren't hasn't haven't hadn't don't doesn't didn't won't can't cannot couldn't shouldn't wouldn't mustn't needn't ain't hardly without`},
	{filler | function, `also just really then now already finally always usually generally actually basically simply only still even currently recently strongly definitely officially eventually ever both all so far ultimately mostly typically normally certainly clearly obviously immediately quickly quite very too`},
	{opener | function, `ok okay sure well so and but or yes yeah yep no nope hey hi hello thanks also anyway right alright oh ah um hmm wow please then great cool nice good perfect fine actually honestly update note fyi btw because since as that which while yet plus still again sorry congrats bye awesome absolutely totally`},
	{function, `of in on at to for from by with about into over under after before between through during against without within along across behind beyond near off onto upon toward towards via per than like as if when whenever while where who whom whose what which why how because since until unless although though whether there here up down out again once more most much many few less least other others such same own else instead rather not never none nothing something anything everything someone anyone everyone nobody everybody anybody let let's that's there's here's what's who's where's how's and or but nor yet
		first second third last next sure sir madam
		yes no ok okay hey hi hello thanks thank welcome bye goodbye cheers congrats congratulations please sorry wow oh ah hmm haha lol yay yeah yep nope awesome amazing cool nice
		today tomorrow yesterday tonight morning afternoon evening night noon midnight week weekend month year day
		btw fyi eta asap tbd todo tba imo imho aka faq rsvp lgtm wip ps pps am pm
		mom mum mommy mummy dad daddy grandma grandpa granny auntie aunt uncle nana papa mama
		absolutely definitely maybe perhaps however meanwhile furthermore moreover additionally finally lastly secondly firstly therefore thus hence otherwise especially currently recently usually sometimes often always ever never soon later early late almost nearly already yet still just only even also too very quite really`},
	{common, `one two three four five six seven eight nine ten new old good bad great big small best better worst worse true false open close dear happy settings export`},
	{month, `january february march april june july august september october november december jan feb apr jun jul aug sept sep oct nov dec may`},
	{weekday, `monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat sun mondays tuesdays wednesdays thursdays fridays saturdays sundays weekdays weekends`},
	{timeWord, `noon midnight yesterday today tomorrow tonight last next ago recently morning afternoon evening week month year weekend weeks months years quarter sprint since birthday summer winter spring autumn fall christmas easter lately deadline daily weekly nightly monthly yearly hourly`},
	{unit, `second seconds minute minutes hour hours day days week weeks month months year years percent kb mb gb tb mib gib ms kg km miles euros dollars requests times`},
	{kin, `brother sister mother father mom mum dad son daughter wife husband partner girlfriend boyfriend fiancé fiancée kid kids child children parents grandma grandpa grandmother grandfather aunt uncle cousin nephew niece twins baby dog dogs cat cats puppy kitten pet pets family fam friend boss manager roommate neighbour neighbor landlord`},
	{numeral, `two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty sixty hundred thousand million twice half dozen`},
	{label, `note decision decisions decided confirmed agreed conclusion summary update fact facts problem issue fix root cause todo action result answer question howto how tip warning important rule preference reminder context background status goal goals next steps re subject date time from to cc agenda example ps edit step option options risk plan pros cons name title url error version reason solution workaround default`},
	{title | function, `dr mr mrs ms prof st frau herr mme sr jr rev capt lt sgt gov sen rep pres mt fr`},
	{abbrev, `e.g i.e vs etc approx inc ltd co corp no fig vol dept est cf al`},
	{condition, `if suppose supposing imagine assuming whether`},
	{reason, `because since therefore due so whenever otherwise hence thus reason`},
	{contrast, `rather instead than over versus vs unlike except`},
	{scope, `always never every each only all any everything whole`},
	{do, `run use set install call open start stop export import copy click press hold add enable disable go type enter edit pass make build put turn pull push restart reload create delete unplug empty sign log dial badge configure remove update wipe get deploy reset renew restore swap download upload boot mount pour mix bake boil preheat stir twist lift plug insert apply wait badge source paste save kill bump tag soak cook feed list search attach detach scroll tap switch select choose pick drag flash format unscrew drain rinse heat whisk simmer fold book bring pay map review check rebuild reboot reinstall upgrade downgrade revert rotate scan clean wash dry grind`},
	{ask, `use write send give show tell answer ask add put include mention schedule book call keep leave commit merge push format name wrap open read repeat apologise apologize explain translate assume guess suggest remind change touch log print start end format take eat buy`},
	{feast, `black cyber ash palm fat bloody casual holy shrove giving`},
	{noVerb, `everything anything something nothing during morning evening spring string ceiling king ring wing thing bring sing speed breed indeed hundred sacred naked wicked interesting boring amazing exciting wedding meeting need seed feed red`},
	{function, `ceo cfo cto coo vp hr pm qa pr prs po ar ci cd api apis sdk ui ux id ids url urls pdf csv json yaml xml html css sql os pc tv cli ide orm dns sre dev prod ops ok ram cpu gpu ttl utc http https ssh vpn e2e us dsn tls ssl ip tcp udp rest crud kpi okr roi faq ai llm ml`},
	{past, `went had did`},
	{work, `met talked discussed reviewed synced chatted spoke called planned meeting looked checked asked said mentioned thought wondered saw heard read tried wanted needed noticed tested pinged emailed joined started pushed merged opened`},
}

// irregularVerbs are base form, past tense and participle.
var irregularVerbs = [][]string{
	{"choose", "chose", "chosen"}, {"go", "went", "gone", "goes"}, {"take", "took", "taken"}, {"get", "got", "gotten"},
	{"make", "made"}, {"keep", "kept"}, {"break", "broke", "broken"}, {"run", "ran", "running"}, {"write", "wrote", "written"},
	{"hold", "held"}, {"hang", "hung"}, {"leave", "left"}, {"find", "found"}, {"lose", "lost"}, {"buy", "bought"},
	{"begin", "began", "begun"}, {"come", "came"}, {"give", "gave", "given"}, {"grow", "grew", "grown"}, {"know", "knew", "known"},
	{"meet", "met"}, {"see", "saw", "seen"}, {"sell", "sold"}, {"send", "sent"}, {"speak", "spoke", "spoken"}, {"spend", "spent"},
	{"teach", "taught"}, {"think", "thought"}, {"win", "won"}, {"build", "built"}, {"drive", "drove", "driven"}, {"eat", "ate", "eaten"},
	{"fly", "flew", "flown"}, {"feel", "felt"}, {"bring", "brought"}, {"catch", "caught"}, {"draw", "drew", "drawn"},
	{"fall", "fell", "fallen"}, {"fight", "fought"}, {"hear", "heard"}, {"hit", "hit"}, {"hurt", "hurt"}, {"put", "put"},
	{"quit", "quit"}, {"read", "read"}, {"ride", "rode", "ridden"}, {"say", "said"}, {"set", "set"}, {"sing", "sang", "sung"},
	{"sleep", "slept"}, {"stick", "stuck"}, {"swim", "swam", "swum"}, {"tell", "told"}, {"throw", "threw", "thrown"},
	{"wear", "wore", "worn"}, {"cut", "cut"}, {"drop", "dropped"}, {"stop", "stopped"}, {"freeze", "froze", "frozen"}, {"shut", "shut"},
	{"bite", "bit", "bitten"}, {"become", "became"}, {"lead", "led"}, {"learn", "learnt"}, {"win", "won"}, {"lie", "lay"},
	{"sit", "sat"}, {"stand", "stood"}, {"understand", "understood"}, {"wake", "woke", "woken"}, {"pay", "paid"}, {"lay", "laid"}, {"shake", "shook", "shaken"},
	{"steal", "stole", "stolen"}, {"tear", "tore", "torn"}, {"swear", "swore", "sworn"}, {"rise", "rose", "risen"}, {"sink", "sank", "sunk"}, {"shine", "shone"},
	{"shoot", "shot"}, {"show", "showed", "shown"}, {"forget", "forgot", "forgotten"}, {"forgive", "forgave"}, {"hide", "hid", "hidden"}, {"blow", "blew", "blown"},
	{"drink", "drank", "drunk"}, {"dig", "dug"}, {"deal", "dealt"}, {"feed", "fed"}, {"flee", "fled"}, {"spread", "spread"}, {"strike", "struck"}, {"sweep", "swept"}, {"weep", "wept"}, {"wind", "wound"}, {"withdraw", "withdrew"}, {"overcome", "overcame"}, {"undergo", "underwent"}, {"rebuild", "rebuilt"},
}
