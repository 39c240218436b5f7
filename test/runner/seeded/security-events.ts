/** Faults of the receiver of security events: each takes one check away. */
import { fault, type SeededFault } from './fault.js'

const CLAIMS = 'actors/platform/jose/security-event-claims.ts'
const TABLE = 'actors/platform/jose/security-event-claims.test.ts'
const PROVIDERS = 'flows/identity/federated-login/upstream-signals.test.ts'
const ISSUERS = 'flows/oauth/workloads/identity-assertions.test.ts'
const PROVIDER = 'actors/identity/sign-in/ways/federated/upstream-signals.ts'
const ISSUER = 'actors/oauth/trusted-issuers/security-events.ts'

type Checks = Readonly<Record<string, readonly [find: string, replace: string]>>
const CHECKS: Checks = {
  'the type': ['if (!/^(?:application', 'if (false && !/^(?:application'],
  'the issuer': ['if (iss !== issuer)', 'if (false)'],
  'the audience': ['if (![aud].flat().includes(audience))', 'if (false)'],
  'no sub': ["if ('sub' in claims)", 'if (false)'],
  'no exp': ["if ('exp' in claims)", 'if (false)'],
  'an id': ['if (!isStored(jti))', 'if (false)'],
  'not from the future': ['|| iat > nowSecs + EVENT_SKEW_SECS', ''],
  'not too old': ['if (iat < nowSecs - AGE_SECS_MAX - EVENT_SKEW_SECS)', 'if (false)'],
  'one event': ['|| more.length > 0', ''],
  'the user is of the issuer': ["&& user['iss'] === issuer", ''],
  'a session is a name': ["format === 'opaque' && isStored(id) ? id : undefined", 'String(id)'],
  'a new credential ends nothing': ["event['change_type'] === 'create'", 'false'],
}
const named = (name: string, source: string, edit: readonly [string, string], test: string) =>
  fault(`security events: ${name}`, source, edit, test)

export const SECURITY_EVENTS: readonly SeededFault[] = [
  ...Object.entries(CHECKS).map(([name, edit]) => named(name, CLAIMS, edit, TABLE)),
  named(
    'the provider signed it',
    'actors/identity/sign-in/ways/federated/client.ts',
    ['await compactVerify(token, keys,', 'void (token, keys,'],
    PROVIDERS,
  ),
  named(
    'received once',
    'actors/platform/received-once.ts',
    ['if (isDone)', 'if (false)'],
    PROVIDERS,
  ),
  named(
    'what began later goes on',
    'storage/identity/upstream-identities.ts',
    ['and b.created_at <= $8', 'and $8::timestamptz is not null'],
    PROVIDERS,
  ),
  named(
    'a provider of the deployment ends what it opened',
    PROVIDER,
    ['tenantId === null ? [] : people', 'people'],
    PROVIDERS,
  ),
  named('the issuer signed it', ISSUER, ['if (unsigned !== undefined)', 'if (false)'], ISSUERS),
  named(
    'the algorithm is allowed',
    ISSUER,
    ['if (!issuer.allowedAlgs.includes(jws.alg))', 'if (false)'],
    ISSUERS,
  ),
]
