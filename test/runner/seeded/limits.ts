/** Faults of limits: guesses, rates, lifetimes, sizes and counts. */
import { fault, type SeededFault } from './fault.js'

const RATE_LIMITS = 'actors/operations/rate-limits/rate-limits.test.ts'

export const LIMITS: readonly SeededFault[] = [
  fault(
    'the last allowed wrong guess locks a name',
    'actors/platform/attempts.ts',
    ['!allowed || used >= window.limit', '!allowed || used > window.limit'],
    'actors/identity/sign-in/lockout.test.ts',
  ),
  fault(
    'a network address has a quota of password checks',
    'actors/identity/sign-in/lockout.ts',
    ['if (!here.allowed)', 'if (!here.allowed && signal?.aborted)'],
    'actors/identity/sign-in/lockout.test.ts',
  ),
  fault(
    'a local window admits its limit',
    'actors/operations/rate-limits/local-counts.ts',
    ['tally.used < limit', 'tally.used <= limit'],
    RATE_LIMITS,
  ),
  fault(
    'registrations are refused while they cannot be counted',
    'actors/operations/rate-limits/actor.ts',
    [`new Set(['registration'])`, `new Set([])`],
    RATE_LIMITS,
  ),
  fault(
    'a code of an authenticator app lives for one step to either side',
    'actors/identity/sign-in/totp.ts',
    ['const DRIFT_STEPS = 1', 'const DRIFT_STEPS = 2'],
    'actors/identity/sign-in/lockout.test.ts',
  ),
  fault(
    'a refresh family ends at its expiry',
    'actors/oauth/tokens/grants/refresh-token.ts',
    ['row.sessionEndedAt !== null || row.expiresAt <= now', 'row.sessionEndedAt !== null'],
    'actors/oauth/tokens/refresh-token.test.ts',
  ),
  fault(
    'a DPoP proof ends with its age',
    'actors/oauth/tokens/verify/dpop.ts',
    ['iat < nowSecs - ageSecsMax', 'iat < nowSecs - ageSecsMax - AHEAD_SECS_MAX'],
    'actors/oauth/tokens/dpop.test.ts',
  ),
  fault(
    'the tenth invalid proof of work closes a challenge',
    'storage/agents/pow-challenges.ts',
    ['invalid_proofs + 1 >= $2', 'invalid_proofs + 1 > $2'],
    'actors/agents/agents/registration.test.ts',
  ),
]
