/** Own service: its log is read, the kms of another is stopped, and a third has tight limits. */
/**
 * The table of refusals: each is provoked over HTTP, and its status, code, headers and the whole body are compared. The
 * rows of operations come from their declarations (problems/pipeline.ts). Others need a special state, and are
 * listed. Each problem type and each OAuth error of the catalogue has a row or the name of its test.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { OAUTH_ERRORS } from '../../actors/domain/oauth-reasons.js'
import { PROBLEM_TYPES } from '../../gateway/response/problems.js'
import { isOAuthError, isProblem } from '../support/service/refusals.js'
import { endpoints, neverRedirected } from './problems/authorize.js'
import { garbage } from './problems/garbage.js'
import { isExplained, OAUTH } from './problems/oauth.js'
import { OPERATIONS } from './problems/operations.js'
import { PIPELINE } from './problems/pipeline.js'
import { test } from './problems/scene.js'

const ROWS = [...OPERATIONS, ...OAUTH, ...PIPELINE]
const LISTED = new Set(OAUTH)

for (const row of ROWS) {
  const { form, status, code, name = '', when, provoke } = row
  test.serial(`${status} ${code}: ${when}`, async (t) => {
    t.timeout(60_000)
    const answer = await provoke(t.context)
    if (form === 'oauth') isOAuthError(t, answer, row)
    else isProblem(t, answer, t.context.running.issuer, { ...row, name })
    if (LISTED.has(row)) await isExplained(t, answer)
  })
}

test('the rows are many', (t) => {
  t.true(PIPELINE.length > 700, String(PIPELINE.length))
})

neverRedirected()
endpoints()

/** Provoked by tests with a special state, by folder. They name the code, or the status that only this type has. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'contract/problems':
    'delegation-expired token-expired payment-required misdirected-request too-early rate-limited ' +
    'use_dpop_nonce rate_limited invalid_request_uri pkce_required',
  gateway:
    'not-acceptable headers-too-large request-timeout uri-too-long server-error server_error ' +
    'service-unavailable not-implemented gateway-timeout version-not-supported',
  conformance:
    'invalid_request_object request_not_supported request_uri_not_supported registration_not_supported unsupported_response_type',
  'flows/vault': 'bad-gateway failed-dependency',
  'flows/identity': 'gone unmet_authentication_requirements',
  'flows/oauth':
    'login_required insufficient_user_authentication temporarily_unavailable invalid_client_metadata expired_login_hint_token ' +
    'invalid_binding_message invalid_authorization_details invalid_credential_request ' +
    'invalid_nonce unknown_credential_configuration unknown_credential_identifier ' +
    'invalid_encryption_parameters credential_request_denied invalid_proof ' +
    'invalid_notification_id invalid_notification_request',
}
/** Codes that clients may know from their protocols. No answer of this release has them. */
const NEVER = new Set([
  'interaction_required',
  'unknown_user_id',
  'invalid_user_code',
  'missing_user_code',
])

test('every problem type and every OAuth error has a row, or is provoked elsewhere', (t) => {
  const provoked = new Set(ROWS.flatMap(({ code, name = '' }) => [code, name]))
  const elsewhere = Object.values(ELSEWHERE).flatMap((codes) => codes.split(' '))
  const known = [...Object.keys(PROBLEM_TYPES), ...Object.keys(OAUTH_ERRORS)]
  t.deepEqual(
    known.filter((one) => !provoked.has(one) && !NEVER.has(one) && !elsewhere.includes(one)),
    [],
  )
  t.deepEqual(
    [...elsewhere, ...NEVER].filter((one) => provoked.has(one) || !known.includes(one)),
    [],
  )
  const types: Readonly<Record<string, { readonly status: number }>> = PROBLEM_TYPES
  for (const [folder, codes] of Object.entries(ELSEWHERE)) {
    const text = readdirSync(`test/${folder}`, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => readFileSync(`test/${folder}/${name}`, 'utf8'))
      .join('\n')
    for (const code of codes.split(' ')) {
      const words = [code, code.replaceAll('-', '_'), types[code]?.status ?? code]
      t.regex(text, new RegExp(`\\b(${words.join('|')})\\b`), `${code} in ${folder}`)
    }
  }
})

// The last: it may end what the others need.
test.serial('malformed requests to all routes get the described answers and do no damage', garbage)
