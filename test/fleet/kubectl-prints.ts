/** What `kubectl get nodes -o …` 1.36 prints for these objects; test/cluster compares it with kubectl itself. */
export const OBJECTS = {
  apiVersion: "v1",
  kind: "NodeList",
  metadata: { resourceVersion: "1" },
  items: ["ghosts", "healthy", "ghosts"].map((verdict, index) => ({
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: `n${index}`, labels: { "example.org/rack": "r<1>" } },
    verdict,
    count: index,
    share: 1.5,
    since: null,
    blocked: ["shop/web-0", "shop/web-1"],
    report: { worst: { class: "shim-leak" }, classes: [{ class: "b", count: 2 }, { class: "a" }] },
    empty: "",
  })),
};

export const PRINTED: readonly (readonly [output: string, printed: string])[] = [
  ["name", "node/n0\nnode/n1\nnode/n2\n"],
  ["jsonpath={.items[*].metadata.name}", "n0 n1 n2"],
  ["jsonpath={.items[0].report}", '{"classes":[{"class":"b","count":2},{"class":"a"}],"worst":{"class":"shim-leak"}}'],
  ["jsonpath={.items[0].blocked}{.items[0].since}{.items[0].share}", '["shop/web-0","shop/web-1"]null1.5'],
  ["jsonpath={.items[0].missing}|{.items[0].empty}|", "||"],
  ["jsonpath={.items[*]['verdict','count']}", "ghosts healthy ghosts 0 1 2"],
  ["jsonpath={.items[0,2].count} {.items[::2].count} {.items[-1:].count} {.items[-1].count}", "0 2 0 2 2 2"],
  [
    "jsonpath={.items[0].metadata.labels.example\\.org/rack} {.items[0].metadata.labels['example\\.org/rack']}",
    "r<1> r<1>",
  ],
  ["jsonpath={.items[0].metadata.labels}", '{"example.org/rack":"r\\u003c1\\u003e"}'],
  ['jsonpath={range .items[*]}{.metadata.name}{"\\t"}{.verdict}{"\\n"}{end}', "n0\tghosts\nn1\thealthy\nn2\tghosts\n"],
  ['jsonpath={.items[?(@.verdict=="ghosts")].metadata.name}', "n0 n2"],
  ["jsonpath={.items[?(@.count>=1)].metadata.name}", "n1 n2"],
  ["jsonpath={range .items[*]}{range .report.classes[*]}{@.class}-{end}{end}", "b-a-b-a-b-a-"],
  ["jsonpath=plain text", "plain text"],
  [
    "jsonpath-as-json={.items[*].report.worst}",
    '[\n    {\n        "class": "shim-leak"\n    },\n    {\n        "class": "shim-leak"\n    },\n    {\n        "class": "shim-leak"\n    }\n]\n',
  ],
  [
    "custom-columns=NODE:.metadata.name,VERDICT:verdict,N:{.count}",
    "NODE   VERDICT   N\nn0     ghosts    0\nn1     healthy   1\nn2     ghosts    2\n",
  ],
  [
    "custom-columns=B:.blocked,C:.blocked[*],R:.report,S:.since,X:.missing,E:.empty,F:.share",
    "B                         C                       R                                                                             S       X        E     F\n[shop/web-0 shop/web-1]   shop/web-0,shop/web-1   map[classes:[map[class:b count:2] map[class:a]] worst:map[class:shim-leak]]   <nil>   <none>         1.5\n[shop/web-0 shop/web-1]   shop/web-0,shop/web-1   map[classes:[map[class:b count:2] map[class:a]] worst:map[class:shim-leak]]   <nil>   <none>         1.5\n[shop/web-0 shop/web-1]   shop/web-0,shop/web-1   map[classes:[map[class:b count:2] map[class:a]] worst:map[class:shim-leak]]   <nil>   <none>         1.5\n",
  ],
  [
    "custom-columns=RACK:.metadata.labels.example\\.org/rack,:.verdict",
    "RACK   \nr<1>   ghosts\nr<1>   healthy\nr<1>   ghosts\n",
  ],
  ['custom-columns=CLASS:.report.classes[?(@.class=="b")].count', "CLASS\n2\n2\n2\n"],
];
