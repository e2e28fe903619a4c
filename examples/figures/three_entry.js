export {
  BufferAttribute, BufferGeometry, Color, DirectionalLight, DoubleSide, FrontSide, Group, HemisphereLight,
  Mesh, MeshLambertMaterial, PerspectiveCamera, Plane, Quaternion, Scene, Vector3, WebGLRenderer,
} from "three";
export { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";
