import test from 'ava'
import * as fc from 'fast-check'
import { readClientAuthentication } from '../../../../actors/oauth/tokens/clients/client-authentication.js'
import { type OAuthForm, readForm } from '../../../../actors/oauth/tokens/form.js'

const JWT_BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
const encode = (text: string) => encodeURIComponent(text).replaceAll('%20', '+')
const basic = (id: string, secret: string) =>
  `Basic ${Buffer.from(`${encode(id)}:${encode(secret)}`).toString('base64')}`
const form = (fields: Record<string, string>) => readForm(Object.entries(fields)) as OAuthForm

for (const [title, authorization, fields, expected] of [
  ['Basic', basic('c', 's'), {}, { method: 'secret', clientId: 'c', secret: 's' }],
  ['Basic in lower case', basic('c', 's').replace('Basic', 'basic'), {}, { method: 'secret' }],
  ['Basic with the same client_id', basic('c', 's'), { client_id: 'c' }, { method: 'secret' }],
  ['Basic with another client_id', basic('c', 's'), { client_id: 'd' }, 'invalid_request'],
  ['Basic with a secret in the form', basic('c', 's'), { client_secret: 's' }, 'invalid_request'],
  ['Basic with an assertion', basic('c', 's'), { client_assertion: 'x' }, 'invalid_request'],
  ['Basic that is not base64', 'Basic %%%', {}, 'invalid_client'],
  ['Basic without a colon', `Basic ${Buffer.from('c').toString('base64')}`, {}, 'invalid_client'],
  ['Basic without an id', `Basic ${Buffer.from(':s').toString('base64')}`, {}, 'invalid_client'],
  ['Basic badly encoded', `Basic ${Buffer.from('%zz:s').toString('base64')}`, {}, 'invalid_client'],
  ['another scheme', 'Digest abc', {}, 'invalid_client'],
  ['a secret in the form', null, { client_id: 'c', client_secret: 's' }, { method: 'secret' }],
  ['a secret without an id', null, { client_secret: 's' }, 'invalid_client'],
  ['only an id', null, { client_id: 'c' }, { method: 'none', clientId: 'c' }],
  ['no credentials', null, {}, 'invalid_client'],
  [
    'an assertion',
    null,
    { client_assertion_type: JWT_BEARER, client_assertion: 'a.b.c' },
    { method: 'assertion', clientId: null, assertion: 'a.b.c' },
  ],
  ['an assertion without its type', null, { client_assertion: 'a.b.c' }, 'invalid_client'],
  ['a type without an assertion', null, { client_assertion_type: JWT_BEARER }, 'invalid_client'],
  [
    'an assertion of another type',
    null,
    { client_assertion_type: 'urn:x', client_assertion: 'a.b.c' },
    'invalid_client',
  ],
  [
    'a Basic header with an empty secret',
    basic('web', ''),
    {},
    { method: 'none', clientId: 'web' },
  ],
  [
    'an assertion and a secret',
    null,
    { client_assertion_type: JWT_BEARER, client_assertion: 'a.b.c', client_secret: 's' },
    'invalid_request',
  ],
] as const) {
  const verdict = typeof expected === 'string' ? `refused with ${expected}` : 'read'
  test(`client authentication by ${title} is ${verdict}`, (t) => {
    const presented = readClientAuthentication(authorization, form(fields))
    if (typeof expected === 'string') t.like(presented, { method: 'refused', error: expected })
    else t.like(presented, expected)
  })
}

test('every id and secret survives encoding into a Basic header', (t) => {
  const text = fc.string({ unit: 'grapheme', minLength: 1 })
  t.notThrows(() =>
    fc.assert(
      fc.property(text, text, (clientId, secret) => {
        const presented = readClientAuthentication(basic(clientId, secret), form({}))
        return (
          presented.method === 'secret' &&
          presented.clientId === clientId &&
          presented.secret === secret
        )
      }),
    ),
  )
})
