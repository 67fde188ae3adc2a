// Takes the names of people, places and organisations out of texts: a JSON list of them on standard
// input, and of what is left of them on standard output. compromise (npm) brings its own rules.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const found = createRequire(process.cwd() + '/').resolve('compromise')
const { default: nlp } = await import(pathToFileURL(found))
const texts = JSON.parse(readFileSync(0, 'utf8'))
const redacted = texts.map((text) => {
  const read = nlp(text)
  for (const kind of ['people', 'places', 'organizations']) read[kind]().remove()
  return read.text()
})
process.stdout.write(JSON.stringify(redacted))
