/** Faults of the logout endpoint for identity providers: each takes one check of a logout token away. */
import { fault, type SeededFault } from './fault.js'

const TOKENS = 'actors/identity/sign-in/ways/federated/logout-token.ts'
const CLAIMS = 'actors/platform/jose/logout-claims.ts'
const TABLE = 'actors/identity/sign-in/ways/federated/logout-token.test.ts'

const CHECKS: Readonly<Record<string, readonly [find: string, replace: string]>> = {
  'logout tokens: the type': ['if (!isType(read.typ))', 'if (false)'],
  'logout tokens: the issuer': ['if (iss !== issuer)', 'if (false)'],
  'logout tokens: the audience': ['if (![aud].flat().includes(audience))', 'if (false)'],
  'logout tokens: the event': [
    'if (!isObject(events) || !isObject(events[LOGOUT_EVENT]))',
    'if (false)',
  ],
  'logout tokens: no nonce': ["if ('nonce' in read.claims)", 'if (false)'],
  'logout tokens: an id': ['if (!isStored(jti))', 'if (false)'],
  'logout tokens: sub is a text': ['if (sub !== null && !isStored(sub))', 'if (false)'],
  'logout tokens: sid is a text': ['if (sid !== null && !isStored(sid))', 'if (false)'],
  'logout tokens: a user or a session': ['if (sub === null && sid === null)', 'if (false)'],
}
const VERIFIED: typeof CHECKS = {
  'logout tokens: the time of issue': ['maxTokenAge: LOGOUT_AGE_SECS_MAX,', ''],
  'logout tokens: the signature': ['await jwtVerify(token, keys,', 'await Promise.resolve('],
}

export const LOGOUT: readonly SeededFault[] = [
  ...Object.entries(CHECKS).map(([name, edit]) => fault(name, CLAIMS, edit, TABLE)),
  ...Object.entries(VERIFIED).map(([name, edit]) => fault(name, TOKENS, edit, TABLE)),
  fault(
    'logout tokens: used once',
    'actors/identity/sign-in/ways/federated/upstream-logout.ts',
    ['if (forget === undefined)', 'if (false)'],
    'flows/identity/federated-login/upstream-logout.test.ts',
  ),
]
