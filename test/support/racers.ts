/** Races for a single-use artefact: eight callers prove its one statement, 200 put it under load. */
const isLong = process.env['TEST_LONG'] === '1'

/** Callers that use one artefact at the same time. */
export const RACERS = isLong ? 200 : 8
/** Races of two processes for a row. */
export const ROUNDS = isLong ? 20 : 4
