/** Reads client metadata: it never throws, and never adds rights (RFC 7591 section 2). */
import test from 'ava'
import * as fc from 'fast-check'
import { readMetadata } from '../../../../../actors/oauth/clients/dynamic/metadata.js'

const CALLBACK = 'https://app.example/callback'
const MEMBERS = [
  'redirect_uris',
  'client_name',
  'token_endpoint_auth_method',
  'grant_types',
  'response_types',
  'scope',
  'application_type',
  'jwks',
  'jwks_uri',
  'post_logout_redirect_uris',
  'allowed_origins',
  'logo_uri',
  'contacts',
  'sector_identifier_uri',
  'subject_type',
  'software_id',
  'tenant',
  'dpop_bound_access_tokens',
  '__proto__',
  'toString',
]
const anything = fc.dictionary(fc.constantFrom(...MEMBERS), fc.jsonValue({ maxDepth: 4 }))

test('any metadata is read or refused with a description', (t) => {
  fc.assert(
    fc.property(anything, (metadata) => {
      const read = readMetadata(metadata)
      if (read.tag === 'refused') t.true(read.description.length > 0)
      else {
        t.true(read.draft.name.length > 0)
        const codes = read.draft.grantTypes!.includes('authorization_code')
        t.is(read.draft.responseTypes!.includes('code'), codes)
        t.true(!codes || read.draft.redirectUris.length > 0)
      }
    }),
    { numRuns: 2000 },
  )
})

test('unknown members change nothing', (t) => {
  const known = { redirect_uris: [CALLBACK], client_name: 'App' }
  const plain = readMetadata(known)
  fc.assert(
    fc.property(
      fc.dictionary(
        fc.string().map((name) => `x_${name}`),
        fc.jsonValue(),
      ),
      (more) => {
        t.deepEqual(readMetadata({ ...more, ...known }), plain)
      },
    ),
  )
})

test('null means the member is absent', (t) => {
  const nulls = Object.fromEntries(MEMBERS.slice(1, 18).map((name) => [name, null]))
  const redirect_uris = [CALLBACK]
  t.deepEqual(readMetadata({ ...nulls, redirect_uris }), readMetadata({ redirect_uris }))
})

test('the defaults follow RFC 7591', (t) => {
  const read = readMetadata({ redirect_uris: [CALLBACK] })
  if (read.tag === 'refused') return t.fail(read.description)
  t.like(read.draft, {
    grantTypes: ['authorization_code'],
    responseTypes: ['code'],
  })
  const machine = readMetadata({ grant_types: ['client_credentials'] })
  if (machine.tag === 'refused') return t.fail(machine.description)
  t.deepEqual(machine.draft.responseTypes, [])
})
