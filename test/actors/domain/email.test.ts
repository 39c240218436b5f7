/** One rule for email addresses: of accounts, from identity providers, of buyers, of mail domains. */
import test from 'ava'
import { buyerFault } from '../../../actors/domain/commerce/buyers.js'
import {
  mailDomain,
  parseEmail,
  shownEmail,
  soughtEmail,
  storedName,
} from '../../../actors/domain/email.js'
import { readEmail } from '../../../actors/platform/mail/public-domains.js'

const ofBuyer = (customerEmail: string) =>
  buyerFault({ customerEmail, buyerCountry: null, buyerRegion: null }) === undefined

/** As typed, as stored, as shown. */
for (const [typed, stored, shown = stored] of [
  ['ada@example.org', 'ada@example.org'],
  ['Ada+x@Example.ORG', 'Ada+x@example.org'],
  ["o&m%x~y/z=a!b#c$d^e{f}|g`h?i*j'k@example.org", "o&m%x~y/z=a!b#c$d^e{f}|g`h?i*j'k@example.org"],
  ['ada@bücher.example', 'ada@xn--bcher-kva.example', 'ada@bücher.example'],
  ['ada@BÜCHER.Example', 'ada@xn--bcher-kva.example', 'ada@bücher.example'],
  ['ada@bu\u0308cher.example', 'ada@xn--bcher-kva.example', 'ada@bücher.example'],
  ['ada@bücher\u3002example', 'ada@xn--bcher-kva.example', 'ada@bücher.example'],
  ['ada@bücher\uff0eexample', 'ada@xn--bcher-kva.example', 'ada@bücher.example'],
  ['ada@\uff42ücher.example', 'ada@xn--bcher-kva.example', 'ada@bücher.example'],
  ['ada@xn--bcher-kva.example', 'ada@xn--bcher-kva.example', 'ada@bücher.example'],
  ['ada@XN--BCHER-KVA.example', 'ada@xn--bcher-kva.example', 'ada@bücher.example'],
  ['ada@faß.de', 'ada@xn--fa-hia.de', 'ada@faß.de'],
  ['ada@fass.de', 'ada@fass.de'],
  ['ada@βόλος.gr', 'ada@xn--nxasmm1c.gr', 'ada@βόλος.gr'],
  ['ada@ΒΌΛΟΣ.gr', 'ada@xn--nxasmq6b.gr', 'ada@βόλοσ.gr'],
  [
    'ada@\u0dc1\u0dca\u200d\u0dbb\u0dd3.com',
    'ada@xn--10cl1a0b660p.com',
    'ada@\u0dc1\u0dca\u200d\u0dbb\u0dd3.com',
  ],
  ['ada@l\u00b7l.cat', 'ada@xn--ll-0ea.cat', 'ada@l\u00b7l.cat'],
  ['ada@一二三。中国', 'ada@xn--4gqsa60b.xn--fiqs8s', 'ada@一二三.中国'],
  ['ada@r3---sn.example', 'ada@r3---sn.example'],
  // All Cyrillic, and Cyrillic mixed with Latin: another domain than the one that it looks like.
  ['ada@аррӏе.com', 'ada@xn--80ak6aa92e.com', 'ada@аррӏе.com'],
  ['ada@аpple.com', 'ada@xn--pple-43d.com', 'ada@xn--pple-43d.com'],
] as const) {
  test(`${typed} is ${stored} everywhere`, (t) => {
    t.deepEqual<unknown, unknown>(
      [parseEmail(typed), readEmail(typed), soughtEmail(typed), ofBuyer(typed), shownEmail(stored)],
      [stored, stored, stored, true, shown],
    )
    t.is<string | undefined, string | undefined>(parseEmail(shown), stored)
  })
}

for (const text of [
  'ada@example.org.',
  'ada\u202e@example.org',
  'ada@example\u200b.org',
  'ada@\u212aelvin.example',
  'ad\u0130@example.org',
  'ada@\u0130.example',
  // Some versions of Unicode map it to ss, others to ß.
  'ada@stra\u1e9ee.example',
  'ada@localhost',
  'ada@.example.com',
  'ada@example..com',
  'ada@bücher\u3002\u3002example',
  'ada..x@example.org',
  '.ada@example.org',
  'ada.@example.org',
  'ada@-example.org',
  'ada@example-.org',
  'ada@-bücher.example',
  'ada@bücher-.example',
  'ada@üa--b.example',
  'ada@exa_mple.org',
  'ada@bü_cher.example',
  'ada@a@example.org',
  '"ada"@example.org',
  'ada@192.0.2.1',
  'ada@0x7f.1',
  'ada@[192.0.2.1]',
  'ada@exam%70le.org',
  'ada@example.org\n',
  // A-labels that no U-label has.
  'ada@xn--.example',
  'ada@xn--zzzzzz.example',
  'ada@xn--a.example',
  'ada@xn--bücher.example',
  'ada@xn--xn--bcher-kva.example',
  // Not in IDNA 2008: symbols, compatible forms, invisible and unassigned characters.
  'ada@☕.example',
  'ada@xn--53h.example',
  'ada@👍.example',
  'ada@ⅷ.example',
  'ada@①.example',
  'ada@ĳ.example',
  'ada@ſ.example',
  'ada@b\u00adücher.example',
  'ada@a\u200db.example',
  'ada@a\u00b7b.example',
  'ada@a\u30fbb.example',
  'ada@\u0301ab.example',
  'ada@\u05d0a.example',
  'ada@\u0660\u06f0.example',
  'ada@\ud800.example',
  `${'a'.repeat(65)}@example.org`,
  `ada@${'a'.repeat(64)}.example`,
  `ada@${'ü'.repeat(60)}.example`,
  `ada@${'a.'.repeat(130)}org`,
]) {
  test(`${JSON.stringify(text).slice(0, 40)} is one nowhere`, (t) => {
    t.deepEqual([parseEmail(text), ofBuyer(text), readEmail(text)], [undefined, false, undefined])
  })
}

test('letters in a local part are of old accounts only', (t) => {
  t.deepEqual<unknown, unknown>(
    [parseEmail('bücher@bücher.example'), soughtEmail('bücher@bücher.example')],
    [undefined, 'bücher@xn--bcher-kva.example'],
  )
})

test('an invalid domain is compared as it was typed', (t) => {
  t.deepEqual<unknown, unknown>(
    [soughtEmail('ada@stra\u1e9ee.example'), soughtEmail('ada@ⅷ.example')],
    ['ada@stra\u1e9ee.example', 'ada@ⅷ.example'],
  )
  t.is(soughtEmail('ada@\u212aelvin.example'), undefined)
})

test('a mail domain has two labels', (t) => {
  t.deepEqual(['Bücher.example', 'example', 'a.b.example', ''].map(mailDomain), [
    'xn--bcher-kva.example',
    undefined,
    'a.b.example',
    undefined,
  ])
})

test('a name stays as it is unless it is an address with letters in the domain', (t) => {
  t.deepEqual(['Ada@Example.org', 'Bücher', 'A@BÜCHER.example'].map(storedName), [
    'Ada@Example.org',
    'Bücher',
    'A@xn--bcher-kva.example',
  ])
})

test('what is no domain is shown as it is', (t) => {
  for (const address of ['', 'ada@example.org', 'ada@xn--zzzzzz.example', 'xn--@example.org'])
    t.is(shownEmail(address), address)
})

test('the work for a long text is bounded', (t) => {
  const long = '\u0660'.repeat(200_000)
  t.deepEqual([parseEmail(`a@${long}`), mailDomain(`${long}.example`)], [undefined, undefined])
  t.is(storedName(`a@${long}`), `a@${long}`)
  t.is(shownEmail(`@xn--${'a'.repeat(200_000)}`).length, 200_005)
})
