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
    'a shared window admits its limit',
    'migrations/0120_stepped_windows.sql',
    ['held + entry.cost <= entry.lim as fits', 'held <= entry.lim as fits'],
    RATE_LIMITS,
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
    'actors/identity/sign-in/totp.test.ts',
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
  fault(
    'the difficulty of registration rises above the trickle',
    'actors/agents/agents/difficulty.ts',
    ['starts <= pow_trickle_per_minute', 'starts <= 2 * pow_trickle_per_minute'],
    'actors/agents/agents/difficulty.test.ts',
  ),

  fault(
    'a client assertion lives for an hour at most',
    'actors/oauth/tokens/clients/client-assertion.ts',
    ['exp > nowSecs + LIFETIME_SECS_MAX', 'exp < nowSecs - LIFETIME_SECS_MAX'],
    'actors/oauth/tokens/clients.test.ts',
  ),
  fault(
    'a form has 200 parameters at most',
    'gateway/body/read.ts',
    ['fields.length >= FIELDS_MAX', 'fields.length > FIELDS_MAX'],
    'gateway/input.test.ts',
  ),
  fault(
    'a JSON body has 1 MiB at most',
    'gateway/route.ts',
    ['JSON_BODY_BYTES_MAX = 1024 * 1024', 'JSON_BODY_BYTES_MAX = 2 * 1024 * 1024'],
    'gateway/input.test.ts',
  ),
  fault(
    'an invite accepts five addresses',
    'storage/identity/operator-invites.ts',
    [
      'jsonb_object_keys(i.letters)) < ${ADDRESSES_MAX}',
      'jsonb_object_keys(i.letters)) <= ${ADDRESSES_MAX}',
    ],
    'flows/identity/organizations/operator-invites.test.ts',
  ),
]
