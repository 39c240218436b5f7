import test from 'ava'
import { SCOPES } from '../../../actors/domain/scopes.js'
import { TEXTS } from '../../../gateway/pages/texts/texts.js'

for (const [locale, texts] of Object.entries(TEXTS)) {
  test(`every scope has its own words for the consent page (${locale})`, (t) => {
    const words = SCOPES.map((scope) => (texts as Record<string, string>)[`scope.${scope}`])
    t.deepEqual(
      SCOPES.filter((_, index) => !words[index]),
      [],
    )
    t.is(new Set(words).size, SCOPES.length)
  })
}
