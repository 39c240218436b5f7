/** Writes the lists of docs/reference/planes.md. */
import { writeFileSync } from 'node:fs'
import { readPlanesPage } from './route-planes.js'

const { page, written } = readPlanesPage()
writeFileSync(page, written)
