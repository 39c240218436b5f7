/** Faults of limits: guesses, rates, lifetimes, sizes and counts. */
import { fault, type SeededFault } from './fault.js'

export const LIMITS: readonly SeededFault[] = [
  fault(
    'the last allowed wrong guess locks a name',
    'actors/platform/attempts.ts',
    ['!allowed || used >= window.limit', '!allowed || used > window.limit'],
    'actors/identity/sign-in/lockout.test.ts',
  ),
]
