/** Writes the lists of docs/concepts/ends.md. */
import { writeFileSync } from 'node:fs'
import { readEndsPage } from './ends-page.js'

const { page, written } = readEndsPage()
writeFileSync(page, written)
