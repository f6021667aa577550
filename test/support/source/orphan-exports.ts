/** Finds what the sources of src export and no other file imports. */
import { posix } from 'node:path';
import ts from 'typescript';
import { parseSource, type Sources, sourceOf } from './architecture.js';

/** The library's exports are there for users, and files that are run or swapped in have no importer. */
const PUBLIC = /^src\/(?:client\/client\.ts|main\.ts|proof\/bytes\/primitives-web\.ts)$/;
const EVERYTHING = '*';

/** The exports of src that neither another source nor a test imports, as `path name`. */
export function findOrphanExports(sources: Sources): string[] {
  const imported = new Set<string>();
  const exported: { path: string; name: string }[] = [];
  for (const [path, text] of Object.entries(sources)) {
    const file = parseSource(path, text);
    for (const { target, name } of importsOf(path, file))
      imported.add(`${sourceOf(target, sources)} ${name}`);
    if (!path.startsWith('src/') || PUBLIC.test(path)) continue;
    for (const name of file.statements.flatMap(declaredExports)) exported.push({ path, name });
  }
  return exported
    .filter(({ path, name }) => !imported.has(`${path} ${name}`) && !imported.has(`${path} ${EVERYTHING}`))
    .map(({ path, name }) => `${path} ${name}`);
}

type Import = { target: string; name: string };

function importsOf(path: string, file: ts.SourceFile): Import[] {
  const found: Import[] = [];
  const add = (specifier: ts.Node | undefined, names: readonly string[]) => {
    if (specifier === undefined || !ts.isStringLiteralLike(specifier) || !specifier.text.startsWith('.'))
      return;
    const target = posix.join(posix.dirname(path), specifier.text).replace(/\.js$/, '.ts');
    for (const name of names) found.push({ target, name });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node))
      add(node.moduleSpecifier, importedNames(node.importClause?.namedBindings));
    if (ts.isExportDeclaration(node)) add(node.moduleSpecifier, importedNames(node.exportClause));
    if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword)
      add(node.arguments[0], [EVERYTHING]);
    if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument))
      add(node.argument.literal, [EVERYTHING]);
    if (ts.isNewExpression(node) && node.expression.getText() === 'URL')
      add(node.arguments?.[0], [EVERYTHING]);
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

function importedNames(bindings: ts.NamedImportBindings | ts.NamedExportBindings | undefined): string[] {
  if (bindings === undefined || !(ts.isNamedImports(bindings) || ts.isNamedExports(bindings)))
    return [EVERYTHING];
  return bindings.elements.map(({ propertyName, name }) => (propertyName ?? name).text);
}

function declaredExports(statement: ts.Statement): string[] {
  const isExported =
    ts.canHaveModifiers(statement) &&
    (ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) ?? false);
  if (!isExported) return [];
  if (ts.isVariableStatement(statement))
    return statement.declarationList.declarations.map(({ name }) => name.getText());
  const { name } = statement as ts.DeclarationStatement;
  return name === undefined ? [] : [name.text];
}
