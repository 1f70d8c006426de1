"""The words of the generated literature: fields of study, their topics, and two ways to say each concept.

Every topic has six concepts, two for each of its three sub-topics, and each concept has two names without a word in
common. A paper keeps to one of the two manners of naming, so two papers on one thing need not share a word:
that is what citations can teach an encoder and words alone cannot. The words of a field stand in papers of all its
topics.
"""

import re
from dataclasses import dataclass

from cocite.ground.errors import InputError

SUBTOPICS = 3
CONCEPTS_PER_SUBTOPIC = 2

_FIELD_WORDS = {
    "Computer Science": "scalable software, benchmark suites, open implementations, large data sets, parallel hardware,"
    " formal guarantees, user interfaces, approximate solutions, automated pipelines, theoretical bounds",
    "Medicine": "clinical guidelines, randomised trials, patient cohorts, hospital records, treatment outcomes,"
    " adverse events, follow-up visits, family doctors, risk factors, survival curves",
    "Biology": "model organisms, laboratory assays, wild populations, molecular pathways, microscope images,"
    " sequenced genomes, mutant strains, evolutionary pressures, tissue samples, regulatory networks",
    "Physics": "precise measurements, numerical simulations, low temperatures, scaling laws, external fields,"
    " perturbation expansions, experimental setups, phase diagrams, energy spectra, symmetry arguments",
    "Environmental Science": "field campaigns, long time series, regional plans, satellite observations,"
    " seasonal patterns, land surveys, monitoring stations, climate scenarios, policy measures, local communities",
    "Psychology": "laboratory participants, questionnaires, individual differences, behavioural experiments,"
    " longitudinal samples, response times, self-reports, young adults, interventions, theoretical accounts",
}

_TOPICS = {
    "Computer Science": """
        graph algorithms: shortest paths/minimal routes; spanning trees/acyclic backbones;
            vertex colouring/node labelling; planar drawings/crossing-free layouts;
            network flow/maximum throughput; matching problems/optimal pairings
        machine translation: parallel corpora/bilingual text; word alignment/lexical correspondence;
            beam search/best-first decoding; subword units/morpheme segments;
            low-resource languages/under-documented tongues; post-editing/human correction
        computer vision: object detection/item localisation; bounding boxes/rectangular regions;
            depth estimation/distance recovery; stereo cameras/binocular sensors;
            image synthesis/picture generation; texture models/surface appearance
        database systems: query optimisation/plan selection; join ordering/operator sequencing;
            transaction logs/recovery journals; concurrency control/lock scheduling;
            column stores/vertical partitioning; index structures/search trees
        network security: intrusion detection/attack recognition; anomalous traffic/suspicious packets;
            public-key encryption/asymmetric ciphers; digital signatures/authenticity proofs;
            malware analysis/virus dissection; sandboxing/isolated execution
        human-computer interaction: touch screens/tactile displays; gesture input/hand movements;
            screen readers/speech output; accessible design/inclusive layouts;
            eye tracking/gaze recording; visual attention/fixation behaviour
        distributed computing: consensus protocols/agreement schemes; leader election/coordinator choice;
            fault tolerance/crash resilience; replicated state/mirrored storage;
            message queues/asynchronous channels; load balancing/work distribution
        software engineering: unit tests/automatic checks; code coverage/exercised statements;
            refactoring/structural clean-up; technical debt/maintenance burden;
            version control/change history; merge conflicts/contradicting edits
        information retrieval: inverted indexes/posting lists; term weighting/word importance;
            relevance feedback/user judgements; query expansion/added keywords;
            click logs/browsing traces; result ranking/answer ordering
        robotics: motion planning/trajectory design; obstacle avoidance/collision prevention;
            grasp control/finger forces; soft actuators/compliant muscles;
            swarm behaviour/collective movement; mapping of rooms/indoor cartography
        programming languages: type inference/static deduction; polymorphic functions/generic routines;
            garbage collection/memory reclamation; just-in-time compilers/dynamic translators;
            effect systems/purity tracking; macro expansion/syntactic extension""",
    "Medicine": """
        cardiology: heart failure/cardiac insufficiency; beta blockers/adrenergic antagonists;
            high blood pressure/arterial hypertension; salt intake/dietary sodium;
            atrial fibrillation/irregular rhythm; stroke prevention/anticoagulant therapy
        oncology: breast cancer/mammary carcinoma; hormone therapy/endocrine treatment;
            lung tumours/bronchial neoplasms; radiation dose/beam intensity;
            immune checkpoint blockade/antibody drugs; melanoma/malignant moles
        infectious disease: antibiotic resistance/drug-tolerant bacteria; hospital hygiene/hand washing;
            malaria/plasmodium infection; bed nets/mosquito protection;
            influenza vaccines/flu immunisation; seasonal outbreaks/winter epidemics
        diabetes care: insulin pumps/subcutaneous infusion; glucose sensors/blood sugar meters;
            type two diabetes/adult-onset hyperglycaemia; metformin/oral medication;
            foot ulcers/plantar wounds; nerve damage/peripheral neuropathy
        neurology: migraine/recurrent headache; aura symptoms/visual disturbances;
            epileptic seizures/convulsive fits; temporal lobe surgery/cortical resection;
            multiple sclerosis/demyelinating disease; lesion load/plaque volume
        paediatrics: preterm birth/early delivery; incubator care/neonatal wards;
            childhood asthma/juvenile wheezing; inhaled steroids/spray corticoids;
            growth charts/height percentiles; infant feeding/baby nutrition
        surgery: keyhole procedures/laparoscopic operations; wound infection/incision sepsis;
            hip replacement/joint prostheses; bone cement/acrylic fixation;
            organ transplants/donor grafts; rejection episodes/host response
        radiology: magnetic resonance imaging/tomographic scanning; contrast agents/gadolinium dye;
            ultrasound probes/sonographic transducers; liver stiffness/hepatic elasticity;
            screening mammograms/preventive x-rays; reader agreement/diagnostic concordance
        mental health care: major depression/persistent low mood; serotonin inhibitors/antidepressant pills;
            schizophrenia/psychotic disorder; hearing voices/auditory hallucinations;
            suicide risk/self-harm danger; crisis lines/telephone counselling
        nutrition: vitamin deficiency/micronutrient shortage; sunlight exposure/outdoor hours;
            obesity/excess weight; calorie restriction/reduced intake;
            gut flora/intestinal bacteria; dietary fibre/whole grains
        nephrology: chronic kidney disease/renal impairment; filtration rate/creatinine clearance;
            dialysis/blood purification; vascular access/fistula surgery;
            kidney stones/urinary calculi; fluid intake/drinking habits""",
    "Biology": """
        gene regulation: transcription factors/dna-binding proteins; promoter regions/upstream elements;
            histone marks/chromatin modifications; gene silencing/heritable repression;
            small rna/short transcripts; target prediction/binding-site inference
        ecology of insects: honey bees/apis colonies; pollination/flower visits;
            ant trails/foraging columns; chemical signals/pheromone traces;
            beetle diversity/coleopteran richness; dead wood/decaying trunks
        plant physiology: stomata/leaf pores; drought stress/water shortage;
            root growth/underground elongation; auxin transport/hormone gradients;
            photosynthesis/carbon fixation; light harvesting/antenna complexes
        protein structure: folding kinetics/conformational dynamics; chaperones/helper proteins;
            membrane channels/ion pores; electron cryomicroscopy/frozen-sample imaging;
            enzyme catalysis/reaction acceleration; active sites/binding pockets
        marine biology: coral reefs/calcifying communities; bleaching/symbiont loss;
            whale song/cetacean vocalisation; underwater noise/ship sound;
            plankton blooms/algal pulses; grazing copepods/tiny crustaceans
        developmental biology: limb buds/appendage primordia; morphogen gradients/signalling slopes;
            stem cells/pluripotent lines; differentiation/lineage commitment;
            neural crest/migrating progenitors; zebrafish embryos/danio larvae
        microbiology: biofilms/surface colonies; quorum sensing/density signalling;
            bacteriophages/prokaryotic viruses; crispr immunity/adaptive defence;
            soil fungi/mycorrhizal partners; nutrient exchange/phosphorus trade
        population genetics: genetic drift/random allele change; bottlenecks/founder events;
            natural selection/adaptive sweeps; linkage blocks/haplotype structure;
            gene flow/migrant exchange; hybrid zones/contact regions
        neurobiology: synaptic plasticity/connection strength; long-term potentiation/lasting enhancement;
            place cells/spatial firing; hippocampal maps/navigation circuits;
            olfactory bulb/smell processing; odour coding/scent representation
        immunology: t cells/thymic lymphocytes; antigen presentation/peptide display;
            inflammation/cytokine release; macrophages/phagocytic scavengers;
            antibody diversity/immunoglobulin repertoires; germinal centres/follicular reactions
        ornithology: bird migration/avian journeys; stopover sites/resting wetlands;
            nest building/breeding architecture; clutch size/egg number;
            song learning/vocal imitation; dialects of finches/regional melodies""",
    "Physics": """
        superconductivity: cuprates/copper-oxide layers; pairing symmetry/gap structure;
            vortex lattices/flux-line arrays; critical current/pinning strength;
            josephson junctions/weak links; microwave qubits/quantum circuits
        astrophysics of stars: white dwarfs/degenerate remnants; supernovae/stellar explosions;
            solar flares/coronal eruptions; magnetic loops/plasma arcades;
            exoplanets/distant worlds; transit photometry/eclipse light curves
        optics: frequency combs/evenly spaced lines; mode locking/pulse synchronisation;
            optical fibres/glass waveguides; nonlinear mixing/parametric conversion;
            photonic crystals/periodic dielectrics; slow light/reduced group velocity
        fluid dynamics: turbulence/chaotic eddies; energy cascade/spectral transfer;
            boundary layers/near-wall flow; drag reduction/lower friction;
            droplet impact/splashing drops; surface tension/capillary forces
        particle physics: higgs decay/scalar boson channels; jet tagging/hadron shower labels;
            neutrino oscillation/flavour mixing; liquid argon detectors/cryogenic chambers;
            dark matter/invisible mass; axions/light pseudoscalars
        quantum information: entanglement/nonlocal correlation; bell tests/local realism checks;
            error correction/stabiliser codes; surface codes/topological memory;
            quantum key distribution/secure photons; repeaters/relay stations
        soft matter: colloids/suspended particles; glass transition/dynamical arrest;
            polymer melts/entangled chains; reptation/snake-like diffusion;
            liquid crystals/nematic phases; topological defects/disclination lines
        magnetism: spin waves/magnon excitations; thin films/deposited layers;
            skyrmions/whirling textures; racetrack memory/domain storage;
            frustrated lattices/competing couplings; spin ice/pyrochlore disorder
        cosmology: microwave background/relic radiation; temperature anisotropy/angular fluctuations;
            galaxy clustering/large-scale structure; baryon oscillations/acoustic peaks;
            inflation models/early expansion; gravitational lensing/light bending
        plasma physics: tokamaks/toroidal devices; edge turbulence/boundary transport;
            laser wakefields/plasma accelerators; electron beams/relativistic bunches;
            dusty plasmas/charged grains; sheath potentials/wall voltages
        semiconductors: quantum dots/artificial atoms; exciton lines/bound-pair emission;
            perovskite cells/halide absorbers; carrier lifetime/recombination delay;
            graphene sheets/carbon monolayers; electron mobility/charge transport""",
    "Environmental Science": """
        climate modelling: cloud feedback/low-level cover; aerosols/airborne particles;
            sea-level rise/coastal flooding; ice sheets/polar glaciers;
            monsoon rainfall/tropical precipitation; ocean heat/warm-water anomalies
        water quality: nitrate leaching/fertiliser losses; groundwater wells/aquifer sampling;
            lake eutrophication/nutrient enrichment; cyanobacteria/blue-green algae;
            drinking water/tap supply; chlorine by-products/disinfection residues
        forest science: wildfire/crown burning; fuel treatment/prescribed thinning;
            carbon stocks/biomass storage; tree rings/annual growth bands;
            bark beetles/scolytid outbreaks; spruce decline/conifer mortality
        air pollution: fine dust/particulate matter; traffic emissions/vehicle exhaust;
            ground-level ozone/photochemical smog; volatile organics/hydrocarbon vapours;
            wood stoves/residential heating; indoor exposure/household smoke
        waste management: plastic recycling/polymer recovery; sorting plants/separation lines;
            landfill gas/methane capture; leachate/percolating liquid;
            food waste/kitchen leftovers; composting/aerobic decay
        renewable energy: wind turbines/rotor farms; wake losses/downstream deficits;
            solar panels/photovoltaic modules; soiling/dust deposition;
            pumped storage/reservoir batteries; grid balancing/demand response
        soil science: erosion/topsoil loss; cover crops/catch plants;
            soil carbon/humus content; tillage/ploughing depth;
            salinity/sodium accumulation; irrigation/field watering
        conservation: protected areas/nature reserves; poaching/illegal hunting;
            species reintroduction/captive release; wolves/large carnivores;
            wildlife corridors/habitat links; road crossings/animal overpasses
        urban ecology: green roofs/planted tops; heat islands/city warming;
            street trees/avenue planting; storm drains/runoff sewers;
            urban birds/town-dwelling sparrows; light pollution/night brightness
        toxicology: pesticides/crop chemicals; neonicotinoids/systemic insecticides;
            heavy metals/cadmium burden; fish gills/aquatic uptake;
            microplastics/tiny fragments; mussels/filter-feeding bivalves
        agronomy: wheat yield/cereal harvest; nitrogen timing/split fertilisation;
            rice paddies/flooded fields; methane flux/greenhouse release;
            crop rotation/alternating cultivation; legumes/bean species""",
    "Psychology": """
        working memory: digit span/recalled numbers; rehearsal/silent repetition;
            dual tasks/concurrent demands; central executive/attentional control;
            memory training/cognitive exercise; transfer effects/untrained gains
        language development: first words/early vocabulary; joint attention/shared gaze;
            bilingual children/two-language families; code switching/mixed utterances;
            dyslexia/reading difficulty; phoneme awareness/sound segmentation
        social influence: conformity/group pressure; majority opinion/prevailing views;
            persuasion/attitude change; message framing/argument wording;
            stereotypes/prejudiced beliefs; intergroup contact/mixed encounters
        sleep research: insomnia/sleeplessness; bedtime routines/evening habits;
            dreaming/nocturnal imagery; rem phases/rapid-eye periods;
            shift work/night duty; circadian rhythm/body clock
        emotion: facial expressions/mimic displays; anger recognition/hostility detection;
            mood regulation/affect control; reappraisal/changed interpretation;
            fear conditioning/learned threat; extinction training/safety learning
        decision making: loss aversion/asymmetric valuation; risky gambles/uncertain lotteries;
            anchoring/initial-value bias; numeric estimates/quantity guesses;
            delay discounting/impatience; self-control/willpower
        perception: optical illusions/deceptive figures; size constancy/stable extent;
            colour vision/hue discrimination; cone signals/retinal receptors;
            multisensory binding/cross-modal fusion; body ownership/rubber hands
        educational psychology: test anxiety/exam worry; expressive writing/journaling;
            feedback/corrective comments; homework/take-home assignments;
            motivation/learning drive; growth mindset/malleable ability beliefs
        ageing: cognitive decline/mental slowing; dementia risk/memory-loss odds;
            physical activity/regular walking; balance training/fall prevention;
            loneliness/social isolation; retirement/leaving work
        personality: extraversion/outgoing nature; leadership/guiding others;
            neuroticism/emotional instability; stress reactivity/strain responses;
            twin studies/sibling comparison; heritability/genetic share
        addiction: cigarette craving/nicotine urge; cue exposure/trigger confrontation;
            problem drinking/alcohol misuse; brief advice/short counselling;
            online gaming/internet play; reward sensitivity/gain responsiveness""",
}


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A topic: its field of study, its name, and its concepts in the order of its sub-topics."""

    field: str
    name: str
    concepts: tuple[tuple[str, str], ...]
    """Two names for each concept; `concepts[2 * s]` and `concepts[2 * s + 1]` belong to sub-topic s."""


def choose_topics(count: int) -> list[Topic]:
    """So many topics, spread evenly over the fields. Raises `InputError` if there are not as many."""
    if not 2 <= count <= len(_ALL_TOPICS):
        raise InputError(f"--topics: is {count}, must be from 2 to {len(_ALL_TOPICS)}.")
    return _ALL_TOPICS[:count]


def _parse(field: str, line: str) -> Topic:
    name, _, concepts = line.strip().partition(": ")
    pairs = [tuple(concept.split("/")) for concept in concepts.split(";")]
    return Topic(field=field, name=name, concepts=tuple((first, second) for first, second in pairs))


FIELD_WORDS = {field: tuple(words.split(", ")) for field, words in _FIELD_WORDS.items()}
_LINES = {field: re.sub(r";\s+", ";", text).strip().split("\n") for field, text in _TOPICS.items()}
_ALL_TOPICS = [_parse(field, lines[rank]) for rank in range(11) for field, lines in _LINES.items()]
