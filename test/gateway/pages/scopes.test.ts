import test from 'ava'
import { SCOPES } from '../../../actors/domain/scopes.js'
import { CATALOGUES } from '../../../gateway/pages/platform/language.js'

for (const [locale, catalogue] of Object.entries(CATALOGUES)) {
  test(`every scope has words of its own for the consent page (${locale})`, (t) => {
    const words = SCOPES.map((scope) => (catalogue as Record<string, string>)[`scope.${scope}`])
    t.deepEqual(
      SCOPES.filter((_, index) => !words[index]),
      [],
    )
    t.is(new Set(words).size, SCOPES.length)
  })
}
