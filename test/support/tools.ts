/** Where packages are that `npm test` installs into a folder for tests alone. */
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Ignored by git. `npm ci` leaves it. */
export const CACHE = fileURLToPath(new URL('../../../.cache/', import.meta.url))
const TOOLS = join(CACHE, 'tools')

/** Loads and finds packages of `test/tools/package.json`. */
export const toolRequire = createRequire(join(TOOLS, 'package.json'))

/** The path of a program of `test/tools/package.json`. */
export const toolProgram = (name: string): string => join(TOOLS, 'node_modules', '.bin', name)
