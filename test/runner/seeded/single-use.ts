/** Faults of single use: codes, tokens, challenges and proofs that work twice. */
import { fault, faults, type SeededFault } from './fault.js'

const CODES = 'storage/oauth/authorization-codes.ts'
const REFRESH_TOKENS = 'storage/oauth/refresh-tokens.ts'
const REFRESH = 'actors/oauth/tokens/grants/refresh-token.ts'
const POW = 'storage/agents/pow-challenges.ts'
const FACTORS = 'storage/identity/second-factors.ts'
const CEREMONIES = 'storage/identity/passkey-ceremonies.ts'
const APPROVALS = 'actors/agents/delegation/rules.ts'
const REGISTRATION = 'storage/oauth/client-registration.ts'
const BACKCHANNEL = 'storage/oauth/backchannel-requests.ts'
const SIGN_IN_ATTACKS = 'flows/identity/sign-in/sign-in-attacks.test.ts'
const PASSKEYS = 'flows/identity/sign-in/passkeys.test.ts'
const RACES = 'flows/oauth/authorization/single-use.test.ts'

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
    'a pre-authorized code is redeemed once',
    'storage/oauth/credential-offers.ts',
    [
      `grant_type = 'pre-authorized_code'
             and status = 'offered' and expires_at`,
      `grant_type = 'pre-authorized_code'
             and expires_at`,
    ],
    'flows/oauth/credentials/redemption-races.test.ts',
  ),
  fault(
    'a resource server takes a DPoP proof once',
    'runtime/clients/resource-server/dpop.ts',
    ['(used.get(id) ?? 0) > nowMs', '(used.get(id) ?? nowMs) < nowMs'],
    'runtime/clients/resource-server/dpop-and-status.test.ts',
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
  fault(
    'a recovery code is used once',
    FACTORS,
    ['code_sha256 = $2 and used_at is null', 'code_sha256 = $2'],
    SIGN_IN_ATTACKS,
  ),
  fault(
    'a code of an authenticator app is used once',
    FACTORS,
    ['and last_step < $3', 'and last_step <= $3'],
    SIGN_IN_ATTACKS,
  ),
  fault(
    'a challenge of a passkey is used once',
    CEREMONIES,
    [
      'delete from passkey_ceremonies\n           where tenant_id = $1 and challenge_sha256 = $2',
      'update passkey_ceremonies set purpose = purpose\n           where tenant_id = $1 and challenge_sha256 = $2',
    ],
    PASSKEYS,
  ),
  faults(
    'an assertion of a passkey approves one delegation',
    [
      { source: APPROVALS, find: 'delegation_id: request.id', replace: "delegation_id: ''" },
      { source: APPROVALS, find: 'match_value: request.userCode', replace: "match_value: ''" },
    ],
    'flows/agents/delegation-passkey.test.ts',
  ),
  fault(
    'a challenge of a passkey belongs to its browser',
    CEREMONIES,
    ['and browser_sha256 = $4 and', 'and $4::bytea is not null and'],
    PASSKEYS,
  ),
  fault(
    'an invite of an operator is used once',
    'storage/identity/operator-invites.ts',
    ['where i.token_sha256 = $1 and i.used_at is null', 'where i.token_sha256 = $1'],
    RACES,
  ),
  fault(
    'a login challenge opens one session',
    'storage/oauth/token-sessions.ts',
    ['c.id = a.challenge_id and c.consumed_at is null', 'c.id = a.challenge_id'],
    RACES,
  ),
  fault(
    'a link or code by mail signs in once',
    'storage/identity/ways/mail-tickets.ts',
    [
      't.used_at is null and t.attempts_left > 0 and t.expires_at > $3',
      't.attempts_left > 0 and t.expires_at > $3',
    ],
    RACES,
  ),
  fault(
    'a pushed authorization request is used once',
    'storage/oauth/authorization-requests.ts',
    ['id = any($2) and consumed_at is null', 'id = any($2)'],
    RACES,
  ),
  faults(
    'a registration token is used up to its number',
    [
      { source: REGISTRATION, find: 'r.uses < r.max_uses', replace: 'r.uses <= r.max_uses' },
      { source: REGISTRATION, find: 'and uses < max_uses', replace: 'and uses <= max_uses' },
    ],
    'flows/oauth/client-registration/registration-attacks.test.ts',
  ),
  fault(
    'a device code or CIBA request is redeemed once',
    BACKCHANNEL,
    [`id = $2 and status = 'approved' and expires_at > $4`, 'id = $2 and expires_at > $4'],
    'flows/oauth/device-and-ciba/device.test.ts',
  ),
  fault(
    'the id of a CIBA request is no device code',
    BACKCHANNEL,
    [
      'where kind = $1 and code_sha256 = $2 and client_id = $3',
      'where $1::text is not null and code_sha256 = $2 and client_id = $3',
    ],
    'flows/oauth/device-and-ciba/ciba-attacks.test.ts',
  ),
  fault(
    'a login challenge is spent once',
    'storage/agents/agent-challenges.ts',
    ['c.id = a.id and c.consumed_at is null', 'c.id = a.id'],
    'storage/identity/identity-races.test.ts',
  ),
  fault(
    'a log of a registry is one event',
    'actors/agents/agents/registries/worker.ts',
    ['!fresh.has(index)', 'fresh.size < 0'],
    'flows/agents/chain-events.test.ts',
  ),
]
