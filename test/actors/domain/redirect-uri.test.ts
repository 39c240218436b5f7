import test from 'ava'
import * as fc from 'fast-check'
import { redirectUriFault } from '../../../actors/domain/redirect-uri.js'

for (const uri of [
  'https://app.example/callback',
  'https://app.example:8443/callback?tenant=1',
  'https://app.example',
  'http://localhost:3000/callback',
  'http://127.0.0.1/callback',
  'http://[::1]:9000/callback',
  'https://xn--bcher-kva.example/callback',
  'https://my_app.example/callback',
  'com.example.app:/callback',
  'com.example.app://callback',
]) {
  test(`${uri} may be a redirect URI`, (t) => t.is(redirectUriFault(uri), undefined))
}

for (const [uri, why] of [
  ['http://app.example/callback', /HTTPS/],
  ['http://localhost.evil.example/', /HTTPS/],
  ['http://127.0.0.1.evil.example/', /HTTPS/],
  ['https://user:secret@app.example/', /user/],
  ['https://app.example/#fragment', /fragment/],
  ['https://*.app.example/', /wildcard/],
  ['https://app.example\\@evil.example/', /backslash/],
  ['https:app.example', /host/],
  ['https:///callback', /host|absolute/],
  ['javascript:alert(1)', /host/],
  ['data:text/html,hello', /host/],
  ['myapp:/callback', /host/],
  ['com.example.app://host:99999/', /absolute/],
  ['com.example.app://[', /absolute/],
  ['com.example.app://user:secret@host/', /user/],
  ['https://a;sandbox/', /host/],
  ['https://a,b.example/', /host/],
  ["https://a'b.example/", /host/],
  ['https://a$b.example/callback', /host/],
  ['https://a&b=c.example/callback', /host/],
  ['http://localhost;x/', /host/],
  ['/callback', /absolute/],
  ['', /visible/],
  ['https://app.example/a b', /visible/],
  ['https://app.example/\n', /visible/],
  ['https://äpp.example/', /visible/],
  [`https://app.example/${'a'.repeat(2048)}`, /longer/],
] as const) {
  test(`${JSON.stringify(uri.slice(0, 60))} may not be a redirect URI`, (t) => {
    t.regex(redirectUriFault(uri) ?? 'accepted', why)
  })
}

test('no text makes the check throw, and what it accepts never carries credentials', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.webUrl(), fc.webUrl({ withFragments: true })), (uri) => {
        if (redirectUriFault(uri) !== undefined || !URL.canParse(uri)) return true
        const { username, password, hash, hostname, protocol } = new URL(uri)
        const isPlain = !protocol.startsWith('http') || !/[;,'"\s]/.test(hostname)
        return username === '' && password === '' && hash === '' && isPlain
      }),
    ),
  )
})
