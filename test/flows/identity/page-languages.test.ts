/** The check of a page's texts finds each kind of fault. The gallery walk uses it on every page. */
import test from 'ava'
import { faultsOf } from '../../support/pages/languages.js'

const ENGLISH = 'Enter the 6-digit code from your authenticator app.'

test('the faults of a page are found', (t) => {
  const page = (words: string) => `<html lang="fr" dir="ltr"><p>${words}</p></html>`
  t.deepEqual(faultsOf(page('Bonjour'), 'fr'), [])
  t.deepEqual(faultsOf(page('login.title'), 'fr'), ['the key login.title'])
  t.deepEqual(faultsOf(page('Bonjour {name}'), 'fr'), ['the placeholder {name}'])
  t.deepEqual(faultsOf(page(ENGLISH), 'fr'), [`in English: ${ENGLISH}`])
  t.is(faultsOf(page('Bonjour'), 'ar').length, 1)
})
