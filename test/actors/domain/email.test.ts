/** One rule for email addresses: of accounts, from identity providers, of buyers. */
import test from 'ava'
import { buyerFault } from '../../../actors/domain/commerce/buyers.js'
import { isEmail } from '../../../actors/domain/email.js'
import { readEmail } from '../../../actors/identity/federated-login/rules.js'

const ofBuyer = (customerEmail: string) =>
  buyerFault({ customerEmail, buyerCountry: null, buyerRegion: null }) === null

for (const address of [
  'ada@example.org',
  'Ada+x@Example.org',
  'bücher@bücher.example',
  "o&m%x~y/z=a!b#c$d^e{f}|g`h?i*j'k@example.org",
  'ada@xn--bcher-kva.example',
]) {
  test(`${address} is an address everywhere`, (t) => {
    t.deepEqual([isEmail(address), ofBuyer(address), readEmail(address)], [true, true, address])
  })
}

for (const text of [
  'ada@example.org.',
  'ada\u202e@example.org',
  'ada@example\u200b.org',
  'ada@\u212aelvin.example',
  'ad\u0130@example.org',
  'ada@localhost',
  'ada@.example.com',
  'ada@example..com',
  'ada..x@example.org',
  '.ada@example.org',
  'ada.@example.org',
  'ada@-example.org',
  'ada@example-.org',
  'ada@exa_mple.org',
  'ada@a@example.org',
  '"ada"@example.org',
  `${'a'.repeat(65)}@example.org`,
  `ada@${'a.'.repeat(130)}org`,
]) {
  test(`${JSON.stringify(text).slice(0, 40)} is one nowhere`, (t) => {
    t.deepEqual([isEmail(text), ofBuyer(text), readEmail(text)], [false, false, undefined])
  })
}
