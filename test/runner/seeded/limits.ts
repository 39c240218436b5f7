/** Faults of limits: guesses, rates, lifetimes, sizes and counts. */
import { fault, type SeededFault } from './fault.js'

const RATE_LIMITS = 'actors/operations/rate-limits/rate-limits.test.ts'

export const LIMITS: readonly SeededFault[] = [
  fault(
    'the last allowed wrong guess locks a name',
    'actors/platform/attempts.ts',
    ['!allowed || used >= window.limit', '!allowed || used > window.limit'],
    'actors/identity/sign-in/limits/lockout.test.ts',
  ),
  fault(
    'a network address has a quota of password checks',
    'actors/identity/sign-in/limits/lockout.ts',
    ['if (!here.allowed)', 'if (!here.allowed && signal?.aborted)'],
    'actors/identity/sign-in/limits/lockout.test.ts',
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
    'actors/identity/sign-in/second-factors/totp.ts',
    ['const DRIFT_STEPS = 1', 'const DRIFT_STEPS = 2'],
    'actors/identity/sign-in/limits/lockout.test.ts',
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
    'a shared window admits its limit',
    'migrations/0120_stepped_windows.sql',
    ['held + entry.cost <= entry.lim as fits', 'held <= entry.lim as fits'],
    'conformance/coordination.test.ts',
  ),
  fault(
    'an agent has 20 keys at most',
    'actors/agents/agents/management/keys.ts',
    ['.length >= KEYS_MAX', '.length > KEYS_MAX'],
    'flows/agents/agent-management.test.ts',
  ),
  fault(
    'a tenant has a number of API keys at most',
    'storage/oauth/api-keys.ts',
    ['expires_at > $10) < $12', 'expires_at > $10) <= $12'],
    'flows/oauth/tokens/api-keys.test.ts',
  ),
  fault(
    'a tenant has a number of webhooks at most',
    'storage/webhooks/webhooks.ts',
    ['deleted_at is null) < $9', 'deleted_at is null) <= $9'],
    'flows/webhooks/webhook-subscriptions.test.ts',
  ),
  fault(
    'an organization has a number of members at most',
    'storage/identity/organization-members.ts',
    [
      `(c.expires_at is null or c.expires_at > $3)) <
      least(`,
      `(c.expires_at is null or c.expires_at > $3)) <=
      least(`,
    ],
    'flows/identity/organizations/organization-limits.test.ts',
  ),
  fault(
    'a page has 200 rows at most',
    'gateway/request/paging.ts',
    ['Math.min(limit, PAGE_SIZE_MAX)', 'Math.max(limit, 1)'],
    'flows/agents/agent-management.test.ts',
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
    'five wrong transaction codes burn an offer',
    'storage/oauth/credential-offers.ts',
    ['when tx_failures + 1 >= $6', 'when tx_failures + 1 > $6'],
    'flows/oauth/credentials/refusals.test.ts',
  ),
  fault(
    'a client assertion lives for an hour at most',
    'actors/oauth/tokens/clients/client-assertion.ts',
    ['exp > nowSecs + LIFETIME_SECS_MAX', 'exp < nowSecs - LIFETIME_SECS_MAX'],
    'actors/oauth/tokens/clients.test.ts',
  ),
  fault(
    'a second try that is not sent does not give back the first',
    'actors/vault/egress/relay/second-try.ts',
    ['isHeard: true', 'isHeard: second.isHeard'],
    'flows/vault/signing/http-signature.test.ts',
  ),
  fault(
    'a cut answer without usage counts by its bytes',
    'actors/vault/egress/relay/usage.ts',
    [`outcome === 'completed' && !isSilent`, '!isSilent'],
    'flows/vault/ledger/egress-budgets.test.ts',
  ),
  fault(
    'a signature counts for the budget',
    'actors/vault/egress/sign-request.ts',
    ['isHeard: true', 'isHeard: false'],
    'flows/vault/signing/http-signature.test.ts',
  ),
  fault(
    'calls of a grant end with its budget',
    'storage/vault/grant-budgets.ts',
    ['requests + $6 <= requests_max', 'requests <= requests_max'],
    'flows/vault/ledger/egress-budgets.test.ts',
  ),
  fault(
    'a token of a language model that is left is taken before the call',
    'storage/vault/grant-budgets.ts',
    ['tokens < tokens_max', 'tokens <= tokens_max'],
    'flows/vault/ledger/egress-budgets.test.ts',
  ),
]
