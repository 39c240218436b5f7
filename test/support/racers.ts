/** Races for a single-use artefact: eight callers prove its one statement, 200 put it under load. */
import { IS_LONG } from './runs.js'

/** Callers that use one artefact at the same time. */
export const RACERS = IS_LONG ? 200 : 8
/** Races of two processes for a row. */
export const ROUNDS = IS_LONG ? 20 : 4
