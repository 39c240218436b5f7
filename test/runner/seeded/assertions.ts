/** Faults of identity assertions: each step of their validation, left out. */
import { fault, type SeededFault } from './fault.js'

const TEST = 'flows/oauth/workloads/identity-assertions.test.ts'
const PROOF = 'actors/oauth/trusted-issuers/admission.ts'
const CLAIMS = 'actors/oauth/trusted-issuers/validation.ts'
const PERSON = 'actors/oauth/trusted-issuers/admit-person.ts'
const PEOPLE = 'actors/oauth/trusted-issuers/people.ts'
const SIGN_OUT = 'actors/oauth/trusted-issuers/sign-out.ts'
const GRANT = 'actors/oauth/tokens/grants/identity-assertion.ts'

const left = (step: string, source: string, find: string, replace: string) =>
  fault(`identity assertions: ${step}`, source, [find, replace], TEST)

export const ASSERTIONS: readonly SeededFault[] = [
  left('the client authenticates', GRANT, `!client.confidential`, `false`),
  left(
    'the application has the grant',
    GRANT,
    `!client.row.grantTypes.includes(JWT_BEARER)`,
    `false`,
  ),
  left(
    'the type says for whom the token speaks',
    PROOF,
    `isIdJagType(typ) === (purpose === 'identity_assertion')`,
    `true`,
  ),
  left('the issuer has the purpose', PROOF, `issuer.purposes[0] !== purpose`, `false`),
  left('the issuer is not this service', CLAIMS, `iss === now.ownIssuer`, `false`),
  left('the issuer made the signature', PROOF, `await isSignedByIssuer(jws, key)`, `true`),
  left('the token has not expired', CLAIMS, `exp <= nowSecs - skew`, `false`),
  left(
    'the token lasts an hour at most',
    CLAIMS,
    `Number(exp) - Number(iat) > ASSERTION_LIFETIME_SECS_MAX`,
    `false`,
  ),
  left('nbf has passed', CLAIMS, `nbf > nowSecs + skew`, `false`),
  left(
    'the token is ten minutes old at most',
    CLAIMS,
    `Math.min(issuer.maxTokenAgeSecs, ASSERTION_AGE_SECS_MAX)`,
    `issuer.maxTokenAgeSecs`,
  ),
  left(
    'the audience is this service to the letter',
    CLAIMS,
    `audiences: [now.ownIssuer]`,
    'audiences: [now.ownIssuer, `${now.ownIssuer}/`]',
  ),
  left('the audience is one value', CLAIMS, `[aud].flat().length !== 1`, `false`),
  left('the audience is the tenant', PERSON, `here !== undefined && here !== tenantId`, `false`),
  left('the token has an id', CLAIMS, `requireJti: true`, `requireJti: false`),
  left('one key uses a token', PERSON, `user.equals(first)`, `true`),
  left('one of many is the first', PERSON, `await coordination.once(key, ttlSecs)`, `true`),
  left('the client is the named one', PERSON, `named !== clientId`, `false`),
  left('the key is the named one', PERSON, `typeof bound === 'string' && bound === jkt`, `true`),
  left('the subject is there', PERSON, `if (!isText(sub))`, `if (false)`),
  left('details are not ignored', PERSON, `details !== undefined`, `false`),
  left('the user is active', PEOPLE, `known.active`, `true`),
  left('the address is verified', PEOPLE, `verified !== true`, `false`),
  left('the issuer may state the domain', PEOPLE, `!issuer.emailDomains.includes(domain)`, `false`),
  left('aud_sub counts where it is trusted', PEOPLE, `!issuer.trustAudSub || `, ``),
  left(
    'resource narrows',
    GRANT,
    `!requested.every((uri) => granted.includes(resourceKey(uri)))`,
    `false`,
  ),
  left(
    'a sign-out ends earlier assertions',
    SIGN_OUT,
    `issuedAtSecs <= Number(Buffer.from(at).toString())`,
    `false`,
  ),
  left('the issuer made the logout token', SIGN_OUT, `unsigned !== undefined`, `false`),
  left('a logout token is used once', SIGN_OUT, `forget === undefined`, `false`),
  left('scope narrows', GRANT, `requested.every((one) => allowed.includes(one))`, `true`),
]
