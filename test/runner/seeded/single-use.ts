/** Faults of single use: codes, tokens, challenges and proofs that work twice. */
import { fault, faults, type SeededFault } from './fault.js'

const CODES = 'storage/oauth/authorization-codes.ts'
const REFRESH_TOKENS = 'storage/oauth/refresh-tokens.ts'
const REFRESH = 'actors/oauth/tokens/grants/refresh-token.ts'
const POW = 'storage/agents/pow-challenges.ts'

export const SINGLE_USE: readonly SeededFault[] = [
  faults(
    'an authorization code is redeemed once',
    [
      {
        source: CODES,
        find: `c.id = a.id and c.redeemed_at is null`,
        replace: `c.id = a.id`,
      },
      {
        source: CODES,
        find: `any(array[l.id]) and c.redeemed_at is null`,
        replace: `any(array[l.id])`,
      },
    ],
    'storage/platform/taken-together.test.ts',
  ),
  faults(
    'a refresh token is rotated once',
    [
      {
        source: REFRESH_TOKENS,
        find: `t.generation = a.generation and t.rotated_at is null for update`,
        replace: `t.generation = a.generation for update`,
      },
      {
        source: REFRESH_TOKENS,
        find: `t.generation = l.generation and t.rotated_at is null`,
        replace: `t.generation = l.generation`,
      },
    ],
    'storage/platform/taken-together.test.ts',
  ),
  fault(
    'reuse of a refresh token revokes its family',
    REFRESH,
    [`sameKey ? 'repeated' : 'replayed'`, `sameKey ? 'repeated' : 'refused'`],
    'actors/oauth/tokens/refresh-token.test.ts',
  ),
  fault(
    'a lost refresh is not repeated after its successor was used',
    REFRESH,
    ['inGrace && !row.successorUsed &&', 'inGrace &&'],
    'actors/oauth/tokens/refresh-token.test.ts',
  ),
  faults(
    'a proof-of-work challenge registers once',
    [
      {
        source: POW,
        find: `and status = 'issued' and expires_at > clock_timestamp() for update`,
        replace: `and expires_at > clock_timestamp() for update`,
      },
      {
        source: POW,
        find: `consumed_at = clock_timestamp()
           where id = $1 and status = 'issued'`,
        replace: `consumed_at = clock_timestamp()
           where id = $1`,
      },
    ],
    'storage/identity/identity-races.test.ts',
  ),
  fault(
    'a login challenge opens one session',
    'storage/oauth/token-sessions.ts',
    [`c.id = a.challenge_id and c.consumed_at is null`, `c.id = a.challenge_id`],
    'storage/identity/identity-races.test.ts',
  ),

  fault(
    'a client assertion authenticates once',
    'actors/oauth/tokens/clients/clients.ts',
    [
      'if (!(await coordination.once(`assertion:${id}`, ttlSecs)))',
      'if (clientId !== null && !(await coordination.once(`assertion:${id}`, ttlSecs)))',
    ],
    'actors/oauth/tokens/clients.test.ts',
  ),
  fault(
    'a resource server takes a DPoP proof once',
    'runtime/resource-server/dpop.ts',
    ['(used.get(id) ?? 0) > nowMs', '(used.get(id) ?? nowMs) < nowMs'],
    'runtime/resource-server/dpop-and-status.test.ts',
  ),
  fault(
    'what happens once in PostgreSQL is claimed once',
    'storage/platform/coordination/postgres.ts',
    ['where v.expires_at <= clock_timestamp()', 'where v.expires_at >= clock_timestamp()'],
    'actors/oauth/tokens/clients.test.ts',
  ),
  fault(
    'a DPoP proof is taken once',
    'actors/oauth/tokens/verify/dpop-verifier.ts',
    ['if (!first)', 'if (!first && settings.require_nonce)'],
    'actors/oauth/tokens/access-token-verifier.test.ts',
  ),
  faults(
    'a link or code by mail signs in once',
    [
      {
        source: 'storage/operations/mail-tickets.ts',
        find: 't.used_at is null and t.attempts_left > 0 and t.expires_at > $3',
        replace: 't.attempts_left > 0 and t.expires_at > $3',
      },
    ],
    'flows/oauth/authorization/single-use.test.ts',
  ),
  faults(
    'a registration token is used up to its number',
    [
      {
        source: 'storage/oauth/client-registration.ts',
        find: 'r.uses < r.max_uses',
        replace: 'r.uses <= r.max_uses',
      },
      {
        source: 'storage/oauth/client-registration.ts',
        find: 'and uses < max_uses',
        replace: 'and uses <= max_uses',
      },
    ],
    'flows/oauth/client-registration/registration-attacks.test.ts',
  ),
  fault(
    'the id of a CIBA request is no device code',
    'storage/oauth/backchannel-requests.ts',
    [
      'where kind = $1 and code_sha256 = $2 and client_id = $3',
      'where $1::text is not null and code_sha256 = $2 and client_id = $3',
    ],
    'flows/oauth/device-and-ciba/ciba-attacks.test.ts',
  ),
]
