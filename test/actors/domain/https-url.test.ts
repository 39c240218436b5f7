import test from 'ava'
import * as fc from 'fast-check'
import { httpsUrl, PAGE } from '../../../actors/domain/entities/https-url.js'

const LOOPBACK = { http: 'of loopback hosts' } as const

for (const [url, rules] of [
  ['https://a.example', {}],
  ['https://a.example:8443/b/c', {}],
  ['https://a.example/b?c', { query: true }],
  ['https://a.example?c', { query: true }],
  ['https://a.example/b?c#d@e', PAGE],
  ['https://a.example:443/', {}],
  ['https://192.0.2.1/', {}],
  ['https://[2001:db8::1]/', {}],
  ['http://localhost:3000/b', LOOPBACK],
  ['http://[::1]/b', LOOPBACK],
  ['https://a.example/b', LOOPBACK],
  ['http://a.example/b', { http: 'of all hosts' }],
  ['HTTPS://A.example/b', { anyCase: true }],
] as const)
  test(`${url} is accepted with ${JSON.stringify(rules)}`, (t) => {
    t.is(httpsUrl(url, rules)?.href, new URL(url).href)
  })

for (const [url, rules] of [
  ['https:a.example', PAGE],
  ['https:///a.example', PAGE],
  ['https://', PAGE],
  ['https://bank.example@evil.example/', PAGE],
  ['https://user:secret@a.example/', PAGE],
  ['https://@a.example/', PAGE],
  ['https://a.example\\@evil.example/', PAGE],
  ['https://a.example/\tb', PAGE],
  [' https://a.example/', PAGE],
  ['https://äpp.example/', PAGE],
  ['https://a.example:99999/', PAGE],
  ['https://a.example:00443/', PAGE],
  ['https://a.example./', PAGE],
  ['https://a..example/', PAGE],
  ['https://*.example/', PAGE],
  ["https://a.example'/", PAGE],
  ['https://bank.example%2eevil.example/', PAGE],
  ['https://%65vil.example/', PAGE],
  ['https://bank%E3%80%82example/', PAGE],
  ['https://2130706433/', PAGE],
  ['https://127.1/', PAGE],
  ['javascript:alert(1)', PAGE],
  ['//a.example/', PAGE],
  ['a.example', PAGE],
  ['', PAGE],
  ['HTTPS://a.example/', PAGE],
  ['https://a.example?', {}],
  ['https://a.example/b?c', { fragment: true }],
  ['https://a.example#', { query: true }],
  ['http://localhost/', PAGE],
  ['http://a.example/', LOOPBACK],
  ['http://localhost.evil.example/', LOOPBACK],
  ['ftp://a.example/', { http: 'of all hosts' }],
  [`https://a.example/${'b'.repeat(2048)}`, PAGE],
  ['https://a.example/', { max: 10 }],
] as const)
  test(`${JSON.stringify(url.slice(0, 60))} is refused with ${JSON.stringify(rules)}`, (t) => {
    t.is(httpsUrl(url, rules), null)
  })

test('property: an accepted URL is shown with the host that browsers open', (t) => {
  const texts = fc.oneof(fc.string(), fc.webUrl({ withFragments: true, withQueryParameters: true }))
  t.notThrows(() =>
    fc.assert(
      fc.property(texts, fc.boolean(), (text, asHttps) => {
        const url = httpsUrl(asHttps ? `https:${text}` : text, PAGE)
        return url === null || (text.toLowerCase().includes(`//${url.host}`) && url.username === '')
      }),
    ),
  )
})
