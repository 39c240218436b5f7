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
    'a client assertion authenticates once',
    'actors/oauth/tokens/clients/clients.ts',
    [
      'if (!(await coordination.once(`assertion:${id}`, ttlSecs)))',
      'if (ttlSecs < 1 && !(await coordination.once(`assertion:${id}`, ttlSecs)))',
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
]
